package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"wmco/applier/remote"
	"wmco/applier/remote/ssh"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/bundle/reason"
	"wmco/controller/gather"
	"wmco/controller/inputs/desired"
	"wmco/internal/cli"
	"wmco/render"
	"wmco/report/inuse"
)

// remoteFlags are those of commands that compare or apply bundles over SSH.
type remoteFlags struct {
	inputFlags
	hostFlags
	// install copies the node agent to hosts that lack it.
	install bool
}

// addInstall adds --install, for commands that only compare.
func (f *remoteFlags) addInstall(cmd *cobra.Command) {
	cmd.Flags().BoolVar(
		&f.install, "install", false,
		"copy the node agent to hosts that lack it, which are only reported otherwise",
	)
}

// host is one host with what it should be.
type host struct {
	target remote.Target
	node   render.Node
	// rendered has the bundle once the facts of the host are known.
	rendered desired.Rendered
	// findings are those of this host alone.
	findings bundle.Findings
	request  remote.Request
	// err is why the host has no answer.
	err error
}

// hosts are those that a command works on over SSH.
type hosts struct {
	client *remote.Client
	// confirms keeps no connections: a confirmation has to arrive over one that was opened after the change.
	confirms *remote.Client
	all      []*host
	parallel int
	// asks is true for a command that asks hosts for their facts.
	asks bool

	// mu guards what follows: hosts are prepared at the same time.
	mu       sync.Mutex
	inputs   *desired.Hosts
	contents *archive.Contents
	// inUse are the bundles that are published for nodes, by name: what only the operator knows stays as it is there.
	inUse map[string]bundle.Bundle
}

// openHosts reads the inputs and finds the node of each host. No host is reached yet. The caller closes the client.
func (f *remoteFlags) openHosts(ctx context.Context, a app) (*hosts, error) {
	targets, err := f.parseTargets()
	if err != nil {
		return nil, err
	}
	if len(targets) > 1 && f.hostChosen() {
		return nil, cli.UsageError("--node and --instance go with one --host")
	}
	dialer, err := f.newDialer(ctx, a)
	if err != nil {
		return nil, err
	}
	program, err := f.nodeProgram(f.payload)
	if err != nil {
		return nil, err
	}
	o := &hosts{parallel: f.parallel, asks: f.facts == ""}
	if o.contents, err = desired.PayloadContents(f.payload); err != nil {
		return nil, err
	}
	if err := o.assignNodes(ctx, a, f.inputFlags, targets); err != nil {
		return nil, err
	}
	client := remote.NewObserver
	if f.install {
		client = remote.NewClient
	}
	o.client = client(ssh.NewTransport(dialer), program, remote.DefaultLimits())
	dialer.Limits.Kept = 0
	o.confirms = o.client.WithTransport(ssh.NewTransport(dialer))
	return o, nil
}

// assignNodes finds the node of each host. Inputs that objects alone refuse are refused before any host is reached.
func (o *hosts) assignNodes(ctx context.Context, a app, f inputFlags, targets []remote.Target) error {
	f.all = !f.hostChosen()
	var err error
	if o.inputs, err = f.readHosts(ctx, a, desired.UserKey()); err != nil {
		return err
	}
	chosen, err := f.chooseHosts(o.inputs)
	if err != nil {
		return err
	}
	var addresses []string
	for _, t := range targets {
		addresses = append(addresses, t.Host())
	}
	nodes, err := o.inputs.AssignToNodes(addresses, chosen)
	if errors.Is(err, desired.ErrUnknown) {
		err = fmt.Errorf("%w: choose one with --node or --instance", err)
	}
	if err != nil {
		return err
	}
	list, _, err := o.inputs.RenderBundles(nodes)
	if err != nil {
		return err
	}
	findings := slices.Clone(o.inputs.Findings)
	for _, r := range list {
		// What is not an error may change with the facts that hosts report.
		findings = append(findings, slices.DeleteFunc(r.Own, func(f bundle.Finding) bool {
			return f.Severity != bundle.SeverityError
		})...)
	}
	if findings.Refused() {
		return refusedInputs(a, ", no host is changed", findings.Sorted())
	}
	for i, n := range nodes {
		o.all = append(o.all, &host{target: targets[i], node: n})
	}
	return o.readInUse(ctx, f)
}

// readInUse reads the published bundles of the nodes, if inputs come from a cluster. Without a payload, executables that
// are not known get a finding.
func (o *hosts) readInUse(ctx context.Context, f inputFlags) error {
	cluster, err := f.lastCluster()
	if err != nil || cluster == nil {
		return err
	}
	var names []string
	for _, h := range o.all {
		if h.node.Name != "" { // nothing is published before there is a Node
			names = append(names, h.node.Name)
		}
	}
	var why map[string]string
	if o.inUse, why, err = inuse.ReadSigned(ctx, cluster, f.namespace, o.inputs.SigningKeys, names); err != nil {
		return &gather.UnreachableError{Err: fmt.Errorf("reading the published bundles: %w", err)}
	}
	for _, h := range o.all {
		if text := why[h.node.Name]; text != "" && f.payload == "" {
			h.findings = append(h.findings, bundle.Finding{
				Severity: bundle.SeverityInfo, Reason: reason.ExecutablesUnknown, Node: h.node.ID(), Object: bundle.Ref{
					Kind: "Node", Name: h.node.Name,
				},
				Message: "the executables that the node has are not known: " + text, Fix: "give them with --payload",
			})
		}
	}
	return nil
}

// forEachHost prepares every host and works on it, without waiting for others, and keeps the error.
func (o *hosts) forEachHost(ctx context.Context, work func(context.Context, *remote.Agent, *host) error) {
	byTarget := map[remote.Target]*host{}
	var targets []remote.Target
	for _, h := range o.all {
		byTarget[h.target] = h
		targets = append(targets, h.target)
	}
	errs := o.client.ForEachHost(ctx, targets, o.parallel, func(ctx context.Context, m *remote.Agent) error {
		if err := o.prepareHost(ctx, m, byTarget[m.Target()]); err != nil {
			return err
		}
		return work(ctx, m, byTarget[m.Target()])
	})
	for i, h := range o.all {
		h.err = errs[i]
	}
}

// prepareHost renders what the host should be, with the facts that it reports.
func (o *hosts) prepareHost(ctx context.Context, m *remote.Agent, h *host) error {
	if o.asks {
		facts, err := m.Facts(ctx)
		if err != nil {
			return err
		}
		var found bundle.Findings
		h.node, found = desired.WithFacts(h.node, facts, h.target.String())
		h.findings = append(h.findings, found...)
	}
	if err := o.renderRequest(h); err != nil {
		return &cli.ExitError{Status: cli.ExitUsage, Err: err}
	}
	return nil
}

// renderRequest makes the request of a host.
func (o *hosts) renderRequest(h *host) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	list, _, err := o.inputs.RenderBundles([]render.Node{h.node})
	if err != nil {
		return err
	}
	h.rendered = list[0]
	if has, ok := o.inUse[h.node.Name]; ok {
		if h.rendered, err = h.rendered.KeepingExecutables(has); err != nil {
			return err
		}
	}
	h.findings = append(h.findings, h.rendered.Own...)
	if h.findings.Refused() {
		return fmt.Errorf("the facts of the host are refused, it is not changed: %s", countText(h.findings))
	}
	r, err := h.rendered.ArchiveRequest(o.contents)
	if errors.Is(err, desired.ErrFactsUnknown) {
		err = fmt.Errorf("%w; without --facts, the host is asked for them", err)
	}
	h.request = remote.Request{Manifest: r.Manifest, Source: r.Source}
	return err
}

// allFindings are those of the cluster and of all hosts here.
func (o *hosts) allFindings() bundle.Findings {
	all := slices.Clone(o.inputs.Findings)
	for _, h := range o.all {
		all = append(all, h.findings...)
	}
	return all.Sorted()
}

// unchangedError is the error of an interrupted command that has changed nothing.
func unchangedError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return &cli.ExitError{Status: cli.ExitInterrupted, Err: errors.New("interrupted, no host was changed")}
}

// severest are the statuses of hosts, the most severe first.
var severest = []int{cli.ExitInterrupted, cli.ExitUsage, cli.ExitPartial, cli.ExitRolledBack, cli.ExitUnreachable, cli.ExitDiffers}

// moreSevere returns the status of two hosts together.
func moreSevere(a, b int) int {
	for _, status := range severest {
		if a == status || b == status {
			return status
		}
	}
	return cli.ExitDone
}

// hostStatus returns the status of an error of a host: unreachable, unless the error has another one. Unknown is the
// status of a command whose end is not known.
func hostStatus(err error, unknown int) int {
	var interrupted *remote.InterruptedError
	var command *remote.CommandError
	var exit *cli.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.Status
	case errors.As(err, &command):
		return cmp.Or(nodeStatus(command.Status), unknown)
	case errors.As(err, &interrupted):
		return unknown
	}
	return cli.ExitUnreachable
}

// nodeStatus returns a status of the node agent that means the same here, 0 for others.
func nodeStatus(status int) int {
	switch status {
	case cli.ExitUsage, cli.ExitPartial, cli.ExitRolledBack:
		return status
	}
	return 0
}
