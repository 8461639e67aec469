package desired

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/gather"
	"wmco/render"
)

var (
	// ErrSeveral means that the inputs have more hosts than the one that was asked for.
	ErrSeveral = errors.New("the inputs have several Windows hosts")
	// ErrUnknown means that the inputs have no host with a name or address.
	ErrUnknown = errors.New("no Windows host of the inputs has this name or address")
	// ErrAmbiguous means that a short name is that of several hosts.
	ErrAmbiguous = errors.New("this is the short name of several Windows hosts")
)

var errNone = errors.New("the inputs have no Windows host: no Node, no Machine with label " +
	"machine.openshift.io/os-id=Windows and an address, no entry of windows-instances")

// SelectAll returns all hosts. None is an error, unless findings refuse the inputs: they may be why.
func (h *Hosts) SelectAll() ([]render.Node, error) {
	if len(h.All) == 0 {
		return nil, h.unlessRefused(errNone)
	}
	return h.All, nil
}

// ListJoined returns the hosts that are known to have a Node and whose facts are known: those for which the operator
// publishes a bundle.
func (h *Hosts) ListJoined() []render.Node {
	return slices.DeleteFunc(slices.Clone(h.All), func(n render.Node) bool {
		return n.Name == "" || n.Unconfirmed || n.Facts.IsZero()
	})
}

// SelectOnlyHost returns the one host of the inputs; ErrSeveral where there are more. Errors are as for SelectAll.
func (h *Hosts) SelectOnlyHost() ([]render.Node, error) {
	if len(h.All) > 1 {
		return nil, h.unlessRefused(fmt.Errorf("%w: %s", ErrSeveral, joinNames(h.All)))
	}
	return h.SelectAll()
}

// SelectByNode returns the host with the Node of this name. The first label is enough where no other host has it.
// Errors are as for SelectAll.
func (h *Hosts) SelectByNode(name string) ([]render.Node, error) {
	return h.chooseOne(pickHost(h.All, name, func(n render.Node) bool { return n.Name == name }))
}

// SelectNamed returns the hosts with these names or addresses, in the order of All. All unknown ones are one
// ErrUnknown.
func (h *Hosts) SelectNamed(list []string) ([]render.Node, error) {
	wanted := func(n render.Node) bool { return slices.Contains(list, n.ID()) || slices.Contains(list, n.Address) }
	var unknown []string
	for _, name := range list {
		if !slices.ContainsFunc(h.All, func(n render.Node) bool { return n.ID() == name || n.Address == name }) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return nil, h.unlessRefused(unknownHost(strings.Join(unknown, ", "), h.All))
	}
	return slices.DeleteFunc(slices.Clone(h.All), func(n render.Node) bool { return !wanted(n) }), nil
}

// SelectByAddress returns the host with this address, whether it has a Node or not. Errors are as for SelectAll.
func (h *Hosts) SelectByAddress(address string) ([]render.Node, error) {
	i := slices.IndexFunc(h.All, func(n render.Node) bool {
		return n.Address == address || slices.Contains(n.Addresses, address)
	})
	if i < 0 {
		return nil, h.unlessRefused(unknownHost(address, h.All))
	}
	return h.All[i : i+1], nil
}

func (h *Hosts) chooseOne(i int, err error) ([]render.Node, error) {
	if err != nil {
		return nil, h.unlessRefused(err)
	}
	return h.All[i : i+1], nil
}

// pickHost returns the position of the host, or of the only one whose short name it is.
func pickHost(nodes []render.Node, host string, is func(render.Node) bool) (int, error) {
	if i := slices.IndexFunc(nodes, is); i >= 0 {
		return i, nil
	}
	var found []int
	for i, n := range nodes {
		if isShortName(n, host) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return 0, unknownHost(host, nodes)
	case 1:
		return found[0], nil
	}
	var candidates []render.Node
	for _, i := range found {
		candidates = append(candidates, nodes[i])
	}
	return 0, fmt.Errorf("%w: %s is %s", ErrAmbiguous, host, joinNames(candidates))
}

func unknownHost(host string, known []render.Node) error {
	return fmt.Errorf("%w: %s; the inputs have %s", ErrUnknown, host, joinNames(known))
}

// isShortName reports whether the name is the first label of a name of the node.
func isShortName(n render.Node, name string) bool {
	return slices.ContainsFunc(append([]string{n.Name, n.Address}, n.HostNames...), func(known string) bool {
		if _, err := netip.ParseAddr(known); err == nil {
			return false
		}
		label, _, _ := strings.Cut(known, ".")
		return label != "" && strings.EqualFold(label, name)
	})
}

// AssignToNodes returns which of the chosen nodes each host is, by the address or name that it is reached at. A single
// host is the single node, whatever its address. Two hosts are two nodes. Warnings about nodes that are not assigned
// are dropped from the findings. Errors are as for SelectAll.
func (h *Hosts) AssignToNodes(hosts []string, chosen []render.Node) ([]render.Node, error) {
	taken := map[string]string{}
	var nodes []render.Node
	for _, host := range hosts {
		i, err := pickHost(chosen, host, func(n render.Node) bool {
			return len(chosen) == 1 && len(hosts) == 1 || isReachedAt(n, host)
		})
		if err != nil {
			return nil, h.unlessRefused(err)
		}
		id := chosen[i].ID()
		if other, ok := taken[id]; ok {
			return nil, h.unlessRefused(fmt.Errorf("%s and %s are the same host, %s", other, host, id))
		}
		taken[id] = host
		nodes = append(nodes, chosen[i])
	}
	h.dropOtherFindings(nodes)
	return nodes, nil
}

func (h *Hosts) unlessRefused(err error) error {
	if h.Findings.Refused() {
		return nil
	}
	return err
}

// dropOtherFindings drops findings about other nodes than these. Errors stay: an object that cannot be read may be
// about any node.
func (h *Hosts) dropOtherFindings(nodes []render.Node) {
	h.Findings = slices.DeleteFunc(slices.Clone(h.Findings), func(f bundle.Finding) bool {
		return f.Severity != bundle.SeverityError && !isAboutCluster(f) &&
			!slices.ContainsFunc(nodes, func(n render.Node) bool { return isAboutNode(f, n) })
	})
}

// FindingsFor returns the findings about the inputs that concern a host: not those about another one by name, such as
// one whose name cannot be used.
func (h *Hosts) FindingsFor(n render.Node) bundle.Findings {
	return slices.DeleteFunc(slices.Clone(h.Findings), func(f bundle.Finding) bool {
		return f.Node != "" && !isAboutNode(f, n)
	})
}

// isAboutCluster reports whether a finding is about no single node.
func isAboutCluster(f bundle.Finding) bool {
	return f.Node == "" && f.Object.Kind != string(render.FromNode) && f.Object.Kind != string(render.FromMachine)
}

// isAboutNode reports whether a finding about a single node is about this one.
func isAboutNode(f bundle.Finding, n render.Node) bool {
	if f.Node != "" {
		return isReachedAt(n, f.Node)
	}
	return n.Origins[render.FromNode] == f.Object || n.Origins[render.FromMachine] == f.Object
}

// isReachedAt reports whether a node is known by the address or name.
func isReachedAt(n render.Node, host string) bool {
	known := slices.Concat([]string{n.Address, n.Name}, n.Addresses, n.HostNames)
	return slices.ContainsFunc(known, func(k string) bool { return k != "" && strings.EqualFold(k, host) })
}

func joinNames(nodes []render.Node) string {
	if len(nodes) == 0 {
		return "none"
	}
	var list []string
	for _, n := range nodes {
		list = append(list, n.ID())
	}
	return strings.Join(list, ", ")
}

// WithFacts returns the node with the facts that its host reports. Facts of another host are not used and are a
// finding, for a host that has joined one of severity error: it would get the bundle of a node that it is not. Host is
// where they come from.
func WithFacts(n render.Node, facts bundle.Facts, host string) (render.Node, bundle.Findings) {
	if gather.FactsDescribe(facts, n) {
		n.Facts = facts
		return n, nil
	}
	severity := bundle.SeverityWarning
	if n.Name != "" {
		severity = bundle.SeverityError
	}
	return n, bundle.Findings{{
		Severity: severity, Reason: reason.FactsUnmatched, Node: n.ID(), Object: bundle.Ref{Source: host},
		Message: fmt.Sprintf("the host reports the name %q and the addresses %s: its facts are not used for %s",
			facts.HostName, strings.Join(facts.Addresses, ", "), n.ID()),
		Fix: "check that --host and --node or --instance are the same host, and check its address in the inputs",
	}}
}
