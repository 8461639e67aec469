package main

import (
	"context"
	"slices"

	"wmco/bundle"
	"wmco/render"
)

// inputs are the Windows machines of a cluster, and what renders them.
type inputs struct {
	// fleet is nil where the findings refuse the cluster.
	fleet *render.Fleet
	nodes []render.Node
	// findings are those of the cluster.
	findings bundle.Findings
}

// read gathers the inputs that the flags name, and renders what the machines share.
func (f *inputFlags) read(ctx context.Context, a app) (inputs, error) {
	result, err := f.gather(ctx, a)
	if err != nil {
		return inputs{}, err
	}
	options, findings, err := f.options(ctx)
	if err != nil {
		return inputs{}, err
	}
	fleet, more, err := render.NewFleet(result.Cluster, options)
	if err != nil {
		return inputs{}, err
	}
	return inputs{fleet: fleet, nodes: result.Nodes, findings: slices.Concat(findings, result.Findings, more)}, nil
}

// choose returns the machines that the flags choose.
func (in *inputs) choose(f *inputFlags) ([]render.Node, error) {
	if in.fleet == nil {
		return nil, nil
	}
	nodes, err := f.selected(in.nodes)
	return nodes, in.unlessRefused(err)
}

// unlessRefused takes the error of a choice that fits no machine away from inputs that are refused, and the fleet with it:
// what is wrong with them may be why.
func (in *inputs) unlessRefused(err error) error {
	if err != nil && in.findings.Refused() {
		in.fleet, err = nil, nil
	}
	return err
}

// render renders one machine. The findings beside it are the machine's own.
func (in *inputs) render(n render.Node) (rendered, bundle.Findings, error) {
	b, own, err := in.fleet.Node(n)
	return rendered{node: n, bundle: b, findings: slices.Concat(in.findings, own).Sorted()}, own, err
}

// keep leaves out what is found of other machines than these. Errors stay: an object that cannot be read may be any machine's.
func (in *inputs) keep(nodes []render.Node) {
	in.findings = slices.DeleteFunc(slices.Clone(in.findings), func(f bundle.Finding) bool {
		return f.Severity != bundle.SeverityError && !ofCluster(f) &&
			!slices.ContainsFunc(nodes, func(n render.Node) bool { return isOf(f, n) })
	})
}

// ofCluster tells whether a finding is of no single machine.
func ofCluster(f bundle.Finding) bool {
	return f.Node == "" && f.Object.Kind != string(render.FromNode) && f.Object.Kind != string(render.FromMachine)
}

// isOf tells whether a finding that is not of the cluster is of the machine.
func isOf(f bundle.Finding, n render.Node) bool {
	if f.Node != "" {
		return isAt(n, f.Node)
	}
	return n.Origins[render.FromNode] == f.Object || n.Origins[render.FromMachine] == f.Object
}
