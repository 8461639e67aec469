package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"wmco/applier/sshhost"
	"wmco/render"
	"wmco/render/bundle"
)

// machineFlags are those of commands that compare or apply bundles over SSH.
type machineFlags struct {
	inputFlags
	hostFlags
}

// member is one machine with what it should be.
type member struct {
	target sshhost.Target
	rendered
	request sshhost.Request
	// err is why there is nothing to ask of the machine any more.
	err error
}

// fleet is everything that a command over SSH works with.
type fleet struct {
	client  *sshhost.Client
	dialer  sshhost.Dialer
	program sshhost.Program
	members []*member
	// findings are those of the inputs, none of severity error.
	findings bundle.Findings
	parallel int
}

// fleet asks the machines for their facts, renders their bundles and hands out each. The caller closes the client.
func (f *machineFlags) fleet(ctx context.Context, a app) (*fleet, error) {
	targets, err := f.targets()
	if err != nil {
		return nil, err
	}
	if len(targets) > 1 && (f.node != "" || f.instance != "") {
		return nil, usageError("--node and --instance go with one --host")
	}
	o := &fleet{parallel: f.parallel}
	if o.dialer, err = f.dialer(ctx, a); err != nil {
		return nil, err
	}
	if o.program, err = f.nodeProgram(f.payload); err != nil {
		return nil, err
	}
	o.client = sshhost.NewClient(o.dialer, o.program)
	for _, t := range targets {
		o.members = append(o.members, &member{target: t})
	}
	if err := f.prepare(ctx, a, o); err != nil {
		return nil, errors.Join(err, o.client.Close())
	}
	return o, nil
}

func (f *machineFlags) prepare(ctx context.Context, a app, o *fleet) error {
	inputs := f.inputFlags
	if f.facts == "" {
		inputs.machineFacts = o.askFacts(ctx)
	}
	inputs.key = digestKey()
	inputs.all = inputs.node == "" && inputs.instance == ""
	bundles, findings, err := renderSelected(ctx, a, &inputs)
	if err != nil {
		return err
	}
	o.findings = findings
	if findings.Refused() {
		printFindings(a.stderr, palette{}, findings)
		return &exitError{exitUsage, fmt.Errorf("the inputs are refused, no machine is touched: %s", count(findings))}
	}
	return o.assign(bundles, f.payload)
}

// askFacts asks every machine about itself. One that does not answer has no facts and no further part.
func (o *fleet) askFacts(ctx context.Context) []bundle.Facts {
	var all []bundle.Facts
	var mu sync.Mutex
	o.each(ctx, func(ctx context.Context, m *sshhost.Machine, _ *member) error {
		facts, err := m.Facts(ctx)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, facts)
		return nil
	})
	return all
}

// each works on every machine that has no error yet, and keeps the error.
func (o *fleet) each(ctx context.Context, work func(context.Context, *sshhost.Machine, *member) error) {
	byTarget := map[sshhost.Target]*member{}
	var targets []sshhost.Target
	for _, m := range o.members {
		if m.err == nil {
			byTarget[m.target] = m
			targets = append(targets, m.target)
		}
	}
	errs := o.client.Each(ctx, targets, o.parallel, func(ctx context.Context, m *sshhost.Machine) error {
		return work(ctx, m, byTarget[m.Target()])
	})
	for i, err := range errs {
		byTarget[targets[i]].err = err
	}
}

// assign gives every machine the bundle of the node that has its address or name. One bundle goes to one machine.
func (o *fleet) assign(bundles []rendered, payloadDir string) error {
	contents, err := newSources(payloadDir)
	if err != nil {
		return err
	}
	taken := map[string]sshhost.Target{}
	for _, m := range o.members {
		i := slices.IndexFunc(bundles, func(r rendered) bool {
			return len(bundles) == 1 && len(o.members) == 1 || isAt(r.node, m.target.Host())
		})
		if i < 0 {
			return usageError("no Windows machine of the inputs has the address or name %s: choose one with --node or --instance; the inputs have %s", m.target.Host(), names(nodesOf(bundles)))
		}
		m.rendered = bundles[i]
		if other, ok := taken[m.node.ID()]; ok {
			return usageError("%s and %s are the same machine, %s", other, m.target, m.node.ID())
		}
		taken[m.node.ID()] = m.target
		if err := m.prepare(contents); err != nil {
			return err
		}
	}
	return nil
}

func (m *member) prepare(contents *sources) error {
	manifest, err := m.bundle.Manifest()
	if err != nil {
		return err
	}
	source, err := contents.of(m.rendered)
	if err != nil {
		return err
	}
	m.request = sshhost.Request{Manifest: manifest, Source: source}
	return nil
}

// isAt tells whether a machine is known by the address or name.
func isAt(n render.Node, host string) bool {
	known := slices.Concat([]string{n.Address, n.Name}, n.Addresses, n.HostNames)
	return slices.ContainsFunc(known, func(k string) bool { return k != "" && strings.EqualFold(k, host) })
}

func nodesOf(bundles []rendered) []render.Node {
	var all []render.Node
	for _, r := range bundles {
		all = append(all, r.node)
	}
	return all
}
