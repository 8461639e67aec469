package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"wmco/applier/remote"
	"wmco/applier/remote/ssh"
	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/render"
	"wmco/render/reason"
)

// machineFlags are those of commands that compare or apply bundles over SSH.
type machineFlags struct {
	inputFlags
	hostFlags
}

// member is one machine with what it should be.
type member struct {
	target remote.Target
	// rendered has the node from the beginning, the bundle once the machine has told its facts.
	rendered
	// own are the findings of this machine alone.
	own     bundle.Findings
	request remote.Request
	// err is why there is nothing to ask of the machine any more.
	err error
}

// fleet is everything that a command over SSH works with.
type fleet struct {
	client   *remote.Client
	dialer   ssh.Dialer
	program  remote.Program
	members  []*member
	parallel int
	// asks tells that machines are asked for their facts.
	asks bool

	// mu is for what follows: machines are made ready at once.
	mu       sync.Mutex
	inputs   inputs
	contents *sources
}

// fleet reads the inputs and finds the node of each machine. Nothing is asked of a machine yet. The caller closes the client.
func (f *machineFlags) fleet(ctx context.Context, a app) (*fleet, error) {
	targets, err := f.targets()
	if err != nil {
		return nil, err
	}
	if len(targets) > 1 && (f.node != "" || f.instance != "") {
		return nil, usageError("--node and --instance go with one --host")
	}
	o := &fleet{parallel: f.parallel, asks: f.facts == ""}
	if o.dialer, err = f.dialer(ctx, a); err != nil {
		return nil, err
	}
	if o.program, err = f.nodeProgram(f.payload); err != nil {
		return nil, err
	}
	if o.contents, err = newSources(f.payload); err != nil {
		return nil, err
	}
	for _, t := range targets {
		o.members = append(o.members, &member{target: t})
	}
	if err := f.choose(ctx, a, o); err != nil {
		return nil, err
	}
	o.client = remote.NewClient(ssh.NewTransport(o.dialer), o.program)
	return o, nil
}

// choose gives every machine its node. Inputs that are refused as far as objects tell are refused before any is reached.
func (f *machineFlags) choose(ctx context.Context, a app, o *fleet) error {
	flags := f.inputFlags
	flags.key = digestKey()
	flags.all = flags.node == "" && flags.instance == ""
	var err error
	if o.inputs, err = flags.read(ctx, a); err != nil {
		return err
	}
	nodes, err := o.inputs.choose(&flags)
	if err == nil && o.inputs.fleet != nil {
		err = o.inputs.unlessRefused(o.assign(nodes))
	}
	if err != nil {
		return err
	}
	refused, err := o.refused()
	if err == nil && refused.Refused() {
		printFindings(a.stderr, palette{}, refused)
		err = &exitError{exitUsage, fmt.Errorf("the inputs are refused, no machine is touched: %s", count(refused))}
	}
	return err
}

// refused are the findings of the cluster, and what is wrong with machines whatever they say of themselves.
func (o *fleet) refused() (bundle.Findings, error) {
	findings := slices.Clone(o.inputs.findings)
	for _, m := range o.members {
		if o.inputs.fleet == nil {
			break
		}
		_, own, err := o.inputs.render(m.node)
		if err != nil {
			return nil, err
		}
		findings = append(findings, slices.DeleteFunc(own, func(f bundle.Finding) bool { return f.Severity != bundle.SeverityError })...)
	}
	return findings.Sorted(), nil
}

// assign gives every machine the node that has its address or name. One node is one machine.
func (o *fleet) assign(nodes []render.Node) error {
	taken := map[string]remote.Target{}
	var chosen []render.Node
	for _, m := range o.members {
		i := slices.IndexFunc(nodes, func(n render.Node) bool {
			return len(nodes) == 1 && len(o.members) == 1 || isAt(n, m.target.Host())
		})
		if i < 0 {
			return usageError("no Windows machine of the inputs has the address or name %s: choose one with --node or --instance; the inputs have %s", m.target.Host(), names(nodes))
		}
		m.node = nodes[i]
		if other, ok := taken[m.node.ID()]; ok {
			return usageError("%s and %s are the same machine, %s", other, m.target, m.node.ID())
		}
		taken[m.node.ID()] = m.target
		chosen = append(chosen, m.node)
	}
	o.inputs.keep(chosen)
	return nil
}

// each makes every machine ready and works on it, without waiting for others, and keeps the error.
func (o *fleet) each(ctx context.Context, work func(context.Context, *remote.Agent, *member) error) {
	byTarget := map[remote.Target]*member{}
	var targets []remote.Target
	for _, m := range o.members {
		byTarget[m.target] = m
		targets = append(targets, m.target)
	}
	errs := o.client.Each(ctx, targets, o.parallel, func(ctx context.Context, m *remote.Agent) error {
		if err := o.prepare(ctx, m, byTarget[m.Target()]); err != nil {
			return err
		}
		return work(ctx, m, byTarget[m.Target()])
	})
	for i, m := range o.members {
		m.err = errs[i]
	}
}

// prepare renders what the machine should be, by what it says of itself.
func (o *fleet) prepare(ctx context.Context, machine *remote.Agent, m *member) error {
	if o.asks {
		facts, err := machine.Facts(ctx)
		if err != nil {
			return err
		}
		m.know(facts)
	}
	if err := o.render(m); err != nil {
		return &exitError{exitUsage, err}
	}
	return nil
}

// know takes what a machine says of itself, if it is the one that the inputs mean. Another machine would get what a node has
// that it is not: of a node, it is refused.
func (m *member) know(facts bundle.Facts) {
	if gather.Describes(facts, m.node) {
		m.node.Facts = facts
		return
	}
	severity := bundle.SeverityWarning
	if m.node.Name != "" {
		severity = bundle.SeverityError
	}
	m.own = append(m.own, bundle.Finding{
		Severity: severity, Reason: reason.FactsUnmatched, Node: m.node.ID(), Object: bundle.Ref{Source: m.target.String()},
		Message: fmt.Sprintf("the machine says that it is %q, with the addresses %s: what it says of itself is not used for %s", facts.HostName, strings.Join(facts.Addresses, ", "), m.node.ID()),
		Fix:     "check that --host and --node or --instance are the same machine, and the address that the inputs have of it",
	})
}

// render makes the request of a machine.
func (o *fleet) render(m *member) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	r, own, err := o.inputs.render(m.node)
	if err != nil {
		return err
	}
	m.rendered, m.own = r, append(m.own, own...)
	if m.own.Refused() {
		return fmt.Errorf("what the machine says of itself is refused, nothing was done there: %s", count(m.own))
	}
	m.request.Manifest, err = r.bundle.Manifest()
	if err != nil {
		return err
	}
	m.request.Source, err = o.contents.of(r)
	return err
}

// findings are those of the cluster and of all machines here.
func (o *fleet) findings() bundle.Findings {
	all := slices.Clone(o.inputs.findings)
	for _, m := range o.members {
		all = append(all, m.own...)
	}
	return all.Sorted()
}

// untouched says that an interrupted command has changed nothing.
func untouched(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return &exitError{exitInterrupted, errors.New("interrupted, no machine was changed")}
}

// isAt tells whether a machine is known by the address or name.
func isAt(n render.Node, host string) bool {
	known := slices.Concat([]string{n.Address, n.Name}, n.Addresses, n.HostNames)
	return slices.ContainsFunc(known, func(k string) bool { return k != "" && strings.EqualFold(k, host) })
}
