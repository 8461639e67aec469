package simnode

import (
	"context"
	"fmt"
	"io"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle/archive"
	"wmco/internal/hostsim/simulation"
	"wmco/layout"
)

// Apply applies a bundle as `wmco-node apply` does, with the real engine in this process.
func (m *Machine) Apply(ctx context.Context, r archive.Request, o applier.Options) (applier.Outcome, error) {
	out, in := io.Pipe()
	go func() { in.CloseWithError(archive.Send(ctx, in, r)) }() // nil is io.EOF
	defer out.Close()                                           //nolint:errcheck // it ends the sender
	reader, err := archive.NewReader(out)
	if err != nil {
		return applier.Outcome{}, fmt.Errorf("reading the bundle: %w", err)
	}
	e := m.newEngine("apply")
	return e.Apply(ctx, reader.Manifest, reader, o)
}

// Observe compares the host with a bundle, reading every file.
func (m *Machine) Observe(ctx context.Context, r archive.Request) (protocol.Observation, error) {
	return m.newEngine("observe").Observe(ctx, r.Manifest, r.Contents(), true)
}

// newEngine returns the applier for this machine. Doing is shown to other runs that find the host locked.
func (m *Machine) newEngine(doing string) *applier.Engine {
	return &applier.Engine{
		Host: m.Applier(), Clock: m.clock, Permits: layout.Check, Program: m.options.Program,
		Owner: "wmco-node " + doing + " of a simulated machine", Settle: settle, Emit: m.emit,
	}
}

func (m *Machine) emit(e protocol.Event) {
	switch e.Event { //nolint:exhaustive // the others say how far it is
	case protocol.EventAction:
		m.log.Debug("action", "verb", e.Action.Verb, "entry", e.Action.Entry, "reason", e.Action.Reason)
	case protocol.EventRollback, protocol.EventNote:
		m.log.Warn("applying", "event", e.Event, "message", e.Message)
	case protocol.EventResult:
		m.log.Info("applied", "result", e.Result, "bundle", e.Bundle.Short(), "written", e.Written, "restarted", e.Restarted)
	}
}

// Addresses are those of the adapters of the machine.
func (m *Machine) Addresses() []string {
	var list []string
	m.look(func(s *simulation.State) { list = s.Facts.Addresses })
	return list
}
