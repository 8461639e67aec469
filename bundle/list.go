package bundle

import (
	"fmt"
	"slices"
	"strings"
)

// list is what every list of a layer can do, whatever its entries are.
type list interface {
	sort()
	check() error
	ids() []EntryID
}

// entries adapts one list of a layer.
type entries[E any] struct {
	kind EntryKind
	all  []E
	// name is the entry's identity and order; valid is nil where any name will do.
	name  func(E) string
	valid func(E) error
}

func (l *Layer) lists() []list {
	return []list{
		entries[Directory]{KindDirectory, l.Directories, func(e Directory) string { return e.Path }, func(e Directory) error { return CheckPath(e.Path) }},
		entries[File]{KindFile, l.Files, func(e File) string { return e.Path }, checkFile},
		entries[State]{KindState, l.State, func(e State) string { return e.Path + stateSuffix(e) }, func(e State) error { return CheckPath(e.Path) }},
		entries[Variable]{KindVariable, l.Variables, func(e Variable) string { return e.Name }, checkVariable},
		entries[Environment]{KindEnvironment, l.Environments, func(e Environment) string { return e.Name }, checkEnvironment},
		entries[Service]{KindService, l.Services, func(e Service) string { return e.Name }, checkService},
		entries[TrustedCA]{KindTrustedCA, l.TrustedCAs, func(e TrustedCA) string { return string(e.Digest) }, func(e TrustedCA) error { return e.Digest.Validate() }},
		entries[Route]{KindRoute, l.Routes, func(e Route) string { return e.Destination }, nil},
		entries[Feature]{KindFeature, l.Features, func(e Feature) string { return e.Name }, nil},
		entries[FirewallRule]{KindFirewall, l.Firewall, func(e FirewallRule) string { return e.Name }, nil},
		entries[Exclusion]{KindExclusion, l.Exclusions, func(e Exclusion) string { return e.Process }, func(e Exclusion) error { return CheckPath(e.Process) }},
		entries[Endpoint]{KindEndpoint, l.Endpoints, func(e Endpoint) string { return e.Name }, nil},
		entries[Network]{KindNetwork, l.Networks, func(e Network) string { return e.Name }, nil},
		entries[HostName]{KindHostName, hostNames(l.HostName), func(HostName) string { return Computer }, nil},
		entries[Payload]{KindPayload, l.Payload, func(e Payload) string { return e.Path }, checkPayload},
	}
}

func hostNames(h HostName) []HostName {
	if h == (HostName{}) {
		return nil
	}
	return []HostName{h}
}

// stateSuffix lets two rules stand for one folder, such as what belongs to a cluster and what piles up.
func stateSuffix(s State) string {
	if s.Pattern == "" {
		return ""
	}
	return `\` + s.Pattern
}

func (e entries[E]) sort() {
	slices.SortStableFunc(e.all, func(a, b E) int { return strings.Compare(FoldPath(e.name(a)), FoldPath(e.name(b))) })
}

func (e entries[E]) ids() []EntryID {
	ids := make([]EntryID, 0, len(e.all))
	for _, x := range e.all {
		ids = append(ids, e.kind.ID(e.name(x)))
	}
	return ids
}

// check also demands the canonical order, so that one bundle has one encoding.
func (e entries[E]) check() error {
	for i, x := range e.all {
		name := e.name(x)
		if name == "" {
			return fmt.Errorf("%s entry %d has no name", e.kind, i)
		}
		if i > 0 {
			switch strings.Compare(FoldPath(e.name(e.all[i-1])), FoldPath(name)) {
			case 0:
				return fmt.Errorf("%s %s stands there twice", e.kind, name)
			case 1:
				return fmt.Errorf("%s %s is out of order", e.kind, name)
			}
		}
		if e.valid == nil {
			continue
		}
		if err := e.valid(x); err != nil {
			return fmt.Errorf("%s %s: %w", e.kind, name, err)
		}
	}
	return nil
}

func checkFile(f File) error {
	if err := CheckPath(f.Path); err != nil {
		return err
	}
	if f.Impact.Rank() > ImpactReboot.Rank() {
		return fmt.Errorf("unknown impact %q", f.Impact)
	}
	return f.Digest.Validate()
}

func checkVariable(v Variable) error {
	if strings.ContainsAny(v.Name, "=\x00") {
		return fmt.Errorf("the name of a variable cannot hold = or NUL")
	}
	if !v.Secret() {
		return nil
	}
	if v.Value != "" {
		return fmt.Errorf("a secret variable shows its value")
	}
	return v.Digest.Validate()
}

func checkEnvironment(e Environment) error {
	for _, v := range e.Variables {
		if err := checkVariable(v); err != nil {
			return fmt.Errorf("variable %s: %w", v.Name, err)
		}
	}
	return nil
}

func checkService(s Service) error {
	if len(s.Argv) == 0 {
		return fmt.Errorf("a service without a command")
	}
	if err := CheckPath(s.Argv[0]); err != nil {
		return err
	}
	for _, a := range s.Argv {
		if strings.Count(a, "%") > 1 {
			return fmt.Errorf("argument %q: Windows expands %%NAME%% in the command of a service, and there is no escape", a)
		}
	}
	for _, path := range s.Reads {
		if err := CheckPath(path); err != nil {
			return err
		}
	}
	for _, l := range s.Logs {
		if err := CheckPath(l.Path); err != nil {
			return err
		}
	}
	return nil
}

func checkPayload(p Payload) error {
	if err := CheckPath(p.Path); err != nil {
		return err
	}
	if p.Digest == "" {
		return nil
	}
	return p.Digest.Validate()
}
