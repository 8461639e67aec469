package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/internal/hostsim/bundletest"
)

// withExecutable is a bundle with an executable, and the executable.
func withExecutable(t *testing.T) (Request, archive.Content) {
	t.Helper()
	m, source := bundletest.New().Contents(t)
	executables := m.PayloadDigests()
	all := archive.Request{Manifest: m, Source: source}.Contents()
	i := slices.IndexFunc(all, func(c archive.Content) bool { return executables[c.Digest] })
	return Request{Manifest: m, Source: source}, all[i]
}

// fetchingHost is a Transport to one host that lacks an executable.
type fetchingHost struct {
	fakeHost
	executable archive.Content
	// has is set once it has the executable; why is what it answers if it cannot fetch it; lacking makes its image lack it.
	has     bool
	why     string
	lacking bool
	// damaged are contents that the first apply finds damaged, although the host has them.
	damaged []protocol.Missing
	// asked are the commands, order what it got for fetching, sent how many parts of contents it got for applying or staging.
	asked []string
	order string
	sent  int
}

func (h *fetchingHost) Run(ctx context.Context, _ Target, c Command) error {
	var stdin bytes.Buffer
	if c.Stdin != nil {
		if err := c.Stdin(ctx, &stdin); err != nil {
			return err
		}
	}
	word, _, _ := strings.Cut(c.Name, " ")
	h.asked = append(h.asked, word)
	e := protocol.Event{Schema: protocol.Schema, Event: protocol.EventResult, Result: protocol.ResultApplied}
	switch word {
	case wordObserve:
		o := protocol.Observation{Schema: protocol.Schema, Impact: bundle.ImpactNone}
		if !h.has {
			o.Missing = []protocol.Missing{{Digest: h.executable.Digest}}
		}
		return printJSON(c, o)
	case wordFetch:
		h.order, h.has = stdin.String(), h.has || h.why == "" && !h.lacking
		if h.why != "" {
			e.Result, e.Message = protocol.ResultPartial, h.why
		}
		return printJSON(c, protocol.Event{Schema: protocol.Schema, Event: protocol.EventFetching, Bytes: 3 << 20, AllBytes: 5 << 20}, e)
	default:
		r, err := archive.NewReader(&stdin)
		if err != nil {
			return err
		}
		for {
			if _, _, err := r.Next(); err != nil {
				break
			}
			h.sent++
		}
		if len(h.damaged) > 0 {
			e.Result, e.Missing, h.damaged = protocol.ResultRefused, h.damaged, nil
		}
		return printJSON(c, e)
	}
}

func printJSON(c Command, values ...any) error {
	var out bytes.Buffer
	for _, v := range values {
		if err := json.NewEncoder(&out).Encode(v); err != nil {
			return err
		}
	}
	return c.Stdout(&out)
}

// TestHostsFetchBeforeAnythingIsSent: what could not be fetched is sent, unless that is forbidden.
func TestHostsFetchBeforeAnythingIsSent(t *testing.T) {
	forbidden, busy := errors.New("forbidden"), errors.New("busy")
	for name, tt := range map[string]struct {
		change func(*fetchingHost, *Fetch)
		asked  []string
		// sent is how many parts of the executable were sent, failed what was told.
		sent   int
		failed string
		err    error
	}{
		"it is fetched": {asked: []string{wordObserve, wordFetch, wordObserve, wordApply}},
		"it is there":   {change: func(h *fetchingHost, _ *Fetch) { h.has = true }, asked: []string{wordObserve, wordApply}},
		"it cannot be fetched": {
			change: func(h *fetchingHost, _ *Fetch) { h.why = "no place has it" }, failed: "no place has it", sent: 1,
			asked: []string{wordObserve, wordFetch, wordObserve, wordApply},
		},
		"the image lacks it": {
			change: func(h *fetchingHost, _ *Fetch) { h.lacking = true }, failed: "the image of the operator has not all of them", sent: 1,
			asked: []string{wordObserve, wordFetch, wordObserve, wordApply},
		},
		"no image is known": {
			change: func(_ *fetchingHost, f *Fetch) {
				f.Order = func([]protocol.Missing) ([]byte, error) { return nil, nil }
			},
			failed: "the operator's image has none of them, or is not known", sent: 1, asked: []string{wordObserve, wordObserve, wordApply},
		},
		"sending is forbidden": {
			change: func(h *fetchingHost, f *Fetch) {
				h.why, f.Failed = "no place has it", func(string) error { return forbidden }
			},
			asked: []string{wordObserve, wordFetch, wordObserve}, err: forbidden,
		},
		"as many fetch as may": {
			change: func(_ *fetchingHost, f *Fetch) {
				f.Begin = func(context.Context) (func(), error) { return nil, busy }
			},
			asked: []string{wordObserve}, err: busy,
		},
		"no order": {
			change: func(_ *fetchingHost, f *Fetch) {
				f.Order = func([]protocol.Missing) ([]byte, error) { return nil, fs.ErrInvalid }
			},
			asked: []string{wordObserve}, err: fs.ErrInvalid,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, executable := withExecutable(t)
			h := &fetchingHost{executable: executable, fakeHost: fakeHost{t: t, files: fakeFiles{}}}
			failed, open := "", 0
			f := &Fetch{
				Order: func(missing []protocol.Missing) ([]byte, error) { return []byte("order of " + missing[0].Digest), nil },
				Begin: func(context.Context) (func(), error) {
					open++
					return func() { open-- }, nil
				},
				Failed: func(why string) error {
					failed = why
					return nil
				},
			}
			if tt.change != nil {
				tt.change(h, f)
			}
			r.Fetch = f
			for _, staged := range []bool{false, true} {
				h, failed := *h, &failed
				*failed = ""
				var steps []string
				ctx := WithSteps(t.Context(), func(s Step) { steps = append(steps, s.Text) })
				asked := slices.Clone(tt.asked)
				err := applyOrStage(ctx, &h, r, staged)
				if staged && slices.Contains(asked, wordApply) {
					asked[len(asked)-1] = wordStage
				}
				if !errors.Is(err, tt.err) || !slices.Equal(h.asked, asked) || h.sent != tt.sent || *failed != tt.failed || open != 0 {
					t.Errorf("staged %t: %v, asked %q, sent %d, told %q, %d open", staged, err, h.asked, h.sent, *failed, open)
				}
				if fetches := slices.Contains(asked, wordFetch); fetches && (h.order != "order of "+string(executable.Digest) || !slices.Contains(steps, "fetching executables: 3 of 5 MiB")) {
					t.Errorf("the order is %q, the steps are %q", h.order, steps)
				}
			}
		})
	}
}

// TestWhatApplyFindsDamagedIsFetchedOrSent: to observe, the host has it.
func TestWhatApplyFindsDamagedIsFetchedOrSent(t *testing.T) {
	for why, sent := range map[string]int{"": 1, "no place has it": 2} {
		r, executable := withExecutable(t)
		other := archive.Request{Manifest: r.Manifest, Source: r.Source}.Contents()[0]
		if other.Digest == executable.Digest {
			other = archive.Request{Manifest: r.Manifest, Source: r.Source}.Contents()[1]
		}
		h := &fetchingHost{executable: executable, fakeHost: fakeHost{t: t, files: fakeFiles{}}, has: true, damaged: []protocol.Missing{{Digest: other.Digest}, {Digest: executable.Digest}}}
		r.Fetch = &Fetch{
			Order:  func([]protocol.Missing) ([]byte, error) { return []byte("order"), nil },
			Begin:  func(context.Context) (func(), error) { return func() {}, nil },
			Failed: func(string) error { return nil },
		}
		h.why = why
		err := applyOrStage(t.Context(), h, r, false)
		if want := []string{wordObserve, wordApply, wordFetch, wordObserve, wordApply}; err != nil || !slices.Equal(h.asked, want) || h.sent != sent {
			t.Errorf("%q: %v, asked %q, %d sent", why, err, h.asked, h.sent)
		}
	}
}

func applyOrStage(ctx context.Context, h *fetchingHost, r Request, staged bool) error {
	client := NewClient(h, Program{Path: programPath, Sum: agentSum}, DefaultLimits())
	agent := client.AgentFor(Target{User: "u", Address: "192.0.2.1:22"})
	if staged {
		_, err := agent.Stage(ctx, r, time.Second)
		return err
	}
	_, err := agent.Apply(ctx, r, ApplyOptions{}, func(protocol.Event) {})
	return err
}
