package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// described is what every description can do, whatever the type of its entries.
type described interface {
	about() Kind
	// addEncoded adds the entries of a layer as a manifest has them.
	addEncoded(l *Layer, into map[EntryID]string)
	listed
	shown
}

// listed is the list of one kind in a layer.
type listed interface {
	sort(l *Layer)
	checkOrder(l *Layer) error
	entryIDs(l *Layer) []EntryID
	addEntries(l *Layer, into map[EntryID]entry)
	listSettings(l *Layer) []Setting
}

// shown are the entries of one kind for people.
type shown interface {
	values(b Bundle) any
	allTexts(b Bundle) []string
}

// Kinds returns the descriptions of all kinds of entries, in the order of the lists of a layer.
func Kinds() []Kind {
	var all []Kind
	for _, k := range kinds {
		all = append(all, k.about())
	}
	return all
}

// Describe returns the description of a kind, a zero one for a kind that does not exist.
func Describe(k EntryKind) Kind {
	if d := k.describedKind(); d != nil {
		return d.about()
	}
	return Kind{}
}

func (k EntryKind) describedKind() described {
	i := slices.IndexFunc(kinds, func(d described) bool { return d.about().Kind == k })
	if i < 0 {
		return nil
	}
	return kinds[i]
}

// Settings returns the entries of the layer that are settings of the host.
func (l *Layer) Settings() []Setting {
	var all []Setting
	for _, k := range kinds {
		all = append(all, k.listSettings(l)...)
	}
	return all
}

// Values returns the entries of one kind of both layers as a slice of their own type; nil when there are none.
func (b Bundle) Values(k EntryKind) any {
	if d := k.describedKind(); d != nil {
		return d.values(b)
	}
	return nil
}

// Texts returns what a summary shows of the entries of one kind, of both layers.
func (b Bundle) Texts(k EntryKind) []string {
	if d := k.describedKind(); d != nil {
		return d.allTexts(b)
	}
	return nil
}

func hostNames(h HostName) []HostName {
	if h == (HostName{}) {
		return nil
	}
	return []HostName{h}
}

// name of a rule includes its pattern: two rules may stand for one folder, such as what belongs to a cluster and what
// piles up.
func (s State) name() string {
	if s.Pattern == "" {
		return s.Path
	}
	return s.Path + `\` + s.Pattern
}

func (k kind[E]) about() Kind {
	k.Kind.Setting = k.setting != nil
	return k.Kind
}

func (k kind[E]) sort(l *Layer) {
	slices.SortStableFunc(k.list(l), func(a, b E) int { return strings.Compare(FoldPath(k.name(a)), FoldPath(k.name(b))) })
}

func (k kind[E]) entryIDs(l *Layer) []EntryID {
	list := k.list(l)
	ids := make([]EntryID, 0, len(list))
	for _, e := range list {
		ids = append(ids, k.entryID(e))
	}
	return ids
}

func (k kind[E]) entryID(e E) EntryID { return k.Kind.Kind.ID(k.name(e)) }

func (k kind[E]) addEntries(l *Layer, into map[EntryID]entry) {
	for _, e := range k.list(l) {
		x := entry{value: e, impact: ImpactNone}
		if k.impact != nil {
			x.impact = k.impact(e)
		}
		if k.compared != nil {
			x.value, x.content = k.compared(e)
		}
		into[k.entryID(e)] = x
	}
}

func (k kind[E]) addEncoded(l *Layer, into map[EntryID]string) {
	for _, e := range k.list(l) {
		text, _ := json.Marshal(e) // an entry is texts and numbers: it can be encoded
		into[k.entryID(e)] = string(text)
	}
}

func (k kind[E]) listSettings(l *Layer) []Setting {
	if k.setting == nil {
		return nil
	}
	var all []Setting
	for _, e := range k.list(l) {
		s := Setting{Kind: k.Kind.Kind, Name: k.name(e), Impact: k.impact(e)}
		s.Value, s.Digest = k.setting(e)
		all = append(all, s)
	}
	return all
}

func (k kind[E]) values(b Bundle) any {
	all := k.bothLayers(b)
	if len(all) == 0 {
		return nil
	}
	return all
}

func (k kind[E]) bothLayers(b Bundle) []E { return slices.Concat(k.list(&b.Cluster), k.list(&b.Node)) }

func (k kind[E]) allTexts(b Bundle) []string {
	if k.text == nil {
		return nil
	}
	var all []string
	for _, e := range k.bothLayers(b) {
		all = append(all, k.text(e))
	}
	return all
}

// checkOrder also requires the canonical order, so that one bundle has one encoding.
func (k kind[E]) checkOrder(l *Layer) error {
	list := k.list(l)
	for i, e := range list {
		name := k.name(e)
		if name == "" {
			return fmt.Errorf("%s entry %d has no name", k.Kind.Kind, i)
		}
		if i > 0 {
			switch strings.Compare(FoldPath(k.name(list[i-1])), FoldPath(name)) {
			case 0:
				return fmt.Errorf("%s %s is listed twice", k.Kind.Kind, name)
			case 1:
				return fmt.Errorf("%s %s is out of order", k.Kind.Kind, name)
			}
		}
		if k.valid == nil {
			continue
		}
		if err := k.valid(e); err != nil {
			return fmt.Errorf("%s %s: %w", k.Kind.Kind, name, err)
		}
	}
	return nil
}

func checkFile(f File) error {
	if err := errors.Join(checkFilePath(f.Path), checkAccess(f.Access)); err != nil {
		return err
	}
	if f.Impact.Rank() > ImpactReboot.Rank() {
		return fmt.Errorf("unknown impact %q", f.Impact)
	}
	return f.Digest.Validate()
}

func checkDirectory(d Directory) error { return errors.Join(CheckPath(d.Path), checkAccess(d.Access)) }

func checkAccess(a Access) error {
	if a != AccessUsers && a != AccessAdmins {
		return fmt.Errorf("unknown access %q", a)
	}
	return nil
}

func checkVariable(v Variable) error {
	if strings.ContainsAny(v.Name, "=\x00") {
		return fmt.Errorf("the name of a variable cannot hold = or NUL")
	}
	if !isASCII(v.Name) {
		return fmt.Errorf("the name of a variable has letters other than ASCII")
	}
	if strings.Contains(v.Value, "\x00") {
		return fmt.Errorf("the value of variable %s holds NUL", v.Name)
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
	seen := map[string]bool{}
	for _, v := range e.Variables {
		if err := checkVariable(v); err != nil {
			return fmt.Errorf("variable %s: %w", v.Name, err)
		}
		if seen[FoldPath(v.Name)] {
			return fmt.Errorf("variable %s is listed twice", v.Name)
		}
		seen[FoldPath(v.Name)] = true
	}
	return nil
}

func checkPayload(p Payload) error {
	if err := checkFilePath(p.Path); err != nil {
		return err
	}
	if p.Digest == "" {
		return nil
	}
	return p.Digest.Validate()
}
