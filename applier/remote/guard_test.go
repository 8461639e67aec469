package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"wmco/applier/ownfile"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// answering is a host with an agent that answers each command, and notes them.
type answering struct {
	commands []string
	// without is true as long as the host has no agent.
	without bool
}

func (h *answering) Connect(context.Context, Target) error { return nil }
func (h *answering) Close() error                          { return nil }

func (h *answering) Run(_ context.Context, t Target, c Command) error {
	word, _, _ := strings.Cut(c.Name, " ")
	h.commands = append(h.commands, word)
	if h.without {
		return &CommandError{Target: t, Command: c.Name, Status: 1}
	}
	text := fmt.Sprintf(`{"schema":%d,"event":"result","result":"applied"}`, protocol.Schema)
	if word == wordObserve {
		text = fmt.Sprintf(`{"schema":%d,"inSync":false}`, protocol.Schema)
	}
	return c.Stdout(strings.NewReader(text + "\n"))
}

func (h *answering) Transfer(context.Context, Target, func(Files) error) error {
	h.commands = append(h.commands, "sftp")
	return errors.New("no files")
}

// TestNothingIsChangedByAClientThatMayNot: questions are asked, and what was begun is confirmed.
func TestNothingIsChangedByAClientThatMayNot(t *testing.T) {
	refused := errors.New("another operator leads")
	source, err := archive.FromBundle(bundle.Bundle{})
	if err != nil {
		t.Fatal(err)
	}
	r := Request{Source: source}
	quiet := func(protocol.Event) {}
	for name, tt := range map[string]struct {
		do      func(*Agent) error
		without bool
		// asked are the commands that run all the same, allowed is what runs besides where the client may.
		asked, allowed []string
	}{
		"apply":   {func(a *Agent) error { _, err := a.Apply(t.Context(), r, ApplyOptions{}, quiet); return err }, false, []string{wordObserve}, []string{wordApply}},
		"stage":   {func(a *Agent) error { _, err := a.Stage(t.Context(), r, 0); return err }, false, []string{wordObserve}, []string{wordStage}},
		"repair":  {func(a *Agent) error { _, err := a.Repair(t.Context(), bundle.ImpactNone, 0); return err }, false, nil, []string{wordRepair}},
		"cleanup": {func(a *Agent) error { _, err := a.Cleanup(t.Context(), 0); return err }, false, nil, []string{wordCleanup}},
		"upload":  {func(a *Agent) error { _, err := a.Facts(t.Context()); return err }, true, []string{wordFacts}, []string{"sftp"}},
	} {
		for _, may := range []bool{false, true} {
			host := &answering{without: tt.without}
			p := Program{Path: ProgramPath(bundle.Of([]byte("p"))), Digest: bundle.Of([]byte("p")), Size: 1, Sum: ownfile.SumText(ownfile.NewSum()), Open: func() (io.ReadCloser, error) { return nil, errors.New("not read") }}
			c := NewClient(host, p, DefaultLimits()).GuardedBy(func(context.Context) error {
				if may {
					return nil
				}
				return refused
			})
			err := tt.do(c.AgentFor(Target{User: "u", Address: "192.0.2.1:22"}))
			want := tt.asked
			if may {
				want = slices.Concat(tt.asked, tt.allowed)
			}
			if !slices.Equal(host.commands, want) {
				t.Errorf("%s, allowed %t: %q, want %q (%v)", name, may, host.commands, want, err)
			}
			if !may && !errors.Is(err, refused) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
