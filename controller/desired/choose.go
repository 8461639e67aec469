package desired

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/render"
	"wmco/render/reason"
)

var (
	// ErrSeveral says that the inputs have more hosts than the one that was asked for.
	ErrSeveral = errors.New("the inputs have several Windows hosts")
	// ErrUnknown says that the inputs have no host with a name or address.
	ErrUnknown = errors.New("no Windows host of the inputs has this name or address")
)

var errNone = errors.New("the inputs have no Windows host: no Node, no Machine with label machine.openshift.io/os-id=Windows and an address, no entry of windows-instances")

// Every returns all hosts. None is an error, unless findings refuse the inputs: they may be why.
func (h *Hosts) Every() ([]render.Node, error) {
	if len(h.All) == 0 {
		return nil, h.unlessRefused(errNone)
	}
	return h.All, nil
}

// Only returns the one host of the inputs; ErrSeveral where there are more. Errors are as for Every.
func (h *Hosts) Only() ([]render.Node, error) {
	if len(h.All) > 1 {
		return nil, h.unlessRefused(fmt.Errorf("%w: %s", ErrSeveral, names(h.All)))
	}
	return h.Every()
}

// Node returns the host with the Node of this name. Errors are as for Every.
func (h *Hosts) Node(name string) ([]render.Node, error) {
	return h.find(name, func(n render.Node) bool { return n.Name == name })
}

// Instance returns the host with this address, whether it has a Node or not. Errors are as for Every.
func (h *Hosts) Instance(address string) ([]render.Node, error) {
	return h.find(address, func(n render.Node) bool { return n.Address == address || slices.Contains(n.Addresses, address) })
}

func (h *Hosts) find(host string, is func(render.Node) bool) ([]render.Node, error) {
	i := slices.IndexFunc(h.All, is)
	if i < 0 {
		return nil, h.unlessRefused(fmt.Errorf("%w: %s; the inputs have %s", ErrUnknown, host, names(h.All)))
	}
	return h.All[i : i+1], nil
}

// Assign returns which of the chosen nodes each host is, by the address or name that it is reached at. A single host is
// the single node, whatever its address. Two hosts are two nodes. Warnings about nodes that are not assigned are dropped
// from the findings. Errors are as for Every.
func (h *Hosts) Assign(hosts []string, chosen []render.Node) ([]render.Node, error) {
	taken := map[string]string{}
	var nodes []render.Node
	for _, host := range hosts {
		i := slices.IndexFunc(chosen, func(n render.Node) bool {
			return len(chosen) == 1 && len(hosts) == 1 || isAt(n, host)
		})
		if i < 0 {
			return nil, h.unlessRefused(fmt.Errorf("%w: %s; the inputs have %s", ErrUnknown, host, names(chosen)))
		}
		id := chosen[i].ID()
		if other, ok := taken[id]; ok {
			return nil, h.unlessRefused(fmt.Errorf("%s and %s are the same host, %s", other, host, id))
		}
		taken[id] = host
		nodes = append(nodes, chosen[i])
	}
	h.keep(nodes)
	return nodes, nil
}

func (h *Hosts) unlessRefused(err error) error {
	if h.Findings.Refused() {
		return nil
	}
	return err
}

// keep drops findings about other nodes than these. Errors stay: an object that cannot be read may be about any node.
func (h *Hosts) keep(nodes []render.Node) {
	h.Findings = slices.DeleteFunc(slices.Clone(h.Findings), func(f bundle.Finding) bool {
		return f.Severity != bundle.SeverityError && !ofCluster(f) &&
			!slices.ContainsFunc(nodes, func(n render.Node) bool { return isOf(f, n) })
	})
}

// ofCluster reports whether a finding is about no single node.
func ofCluster(f bundle.Finding) bool {
	return f.Node == "" && f.Object.Kind != string(render.FromNode) && f.Object.Kind != string(render.FromMachine)
}

// isOf reports whether a finding about a single node is about this one.
func isOf(f bundle.Finding, n render.Node) bool {
	if f.Node != "" {
		return isAt(n, f.Node)
	}
	return n.Origins[render.FromNode] == f.Object || n.Origins[render.FromMachine] == f.Object
}

// isAt reports whether a node is known by the address or name.
func isAt(n render.Node, host string) bool {
	known := slices.Concat([]string{n.Address, n.Name}, n.Addresses, n.HostNames)
	return slices.ContainsFunc(known, func(k string) bool { return k != "" && strings.EqualFold(k, host) })
}

func names(nodes []render.Node) string {
	if len(nodes) == 0 {
		return "none"
	}
	var list []string
	for _, n := range nodes {
		list = append(list, n.ID())
	}
	return strings.Join(list, ", ")
}

// WithFacts returns the node with the facts that its host reports. Facts of another host are not used and are a finding, for
// a host that has joined one of severity error: it would get the bundle of a node that it is not. Host is where they come
// from.
func WithFacts(n render.Node, facts bundle.Facts, host string) (render.Node, bundle.Findings) {
	if gather.Describes(facts, n) {
		n.Facts = facts
		return n, nil
	}
	severity := bundle.SeverityWarning
	if n.Name != "" {
		severity = bundle.SeverityError
	}
	return n, bundle.Findings{{
		Severity: severity, Reason: reason.FactsUnmatched, Node: n.ID(), Object: bundle.Ref{Source: host},
		Message: fmt.Sprintf("the host reports the name %q and the addresses %s: its facts are not used for %s", facts.HostName, strings.Join(facts.Addresses, ", "), n.ID()),
		Fix:     "check that --host and --node or --instance are the same host, and check its address in the inputs",
	}}
}
