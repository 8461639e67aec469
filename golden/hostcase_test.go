package golden

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/internal/golden"
	"wmco/internal/hostsim"
	"wmco/layout"
)

// hostCase is golden.yaml of a folder below hosts: a bundle, and the host that it is applied to.
type hostCase struct {
	golden.Case
	Host hostState `json:"host"`
}

// hostState is the state of a host before: an empty host with facts, to which bundles were applied one after the other, and
// which was edited then.
type hostState struct {
	// Facts is a file of facts, relative to the case's folder. The default is those that the bundle was rendered with.
	Facts string `json:"facts,omitempty"`
	// Before are edits before the first bundle.
	Before  []edit    `json:"before,omitempty"`
	Bundles []earlier `json:"bundles,omitempty"`
	Edits   []edit    `json:"edits,omitempty"`
	// Like is the folder of the case, relative to this one's, whose golden this one is shown as differences to.
	Like string `json:"like,omitempty"`
	// Reset is the node that the host may stop being, as the operator says it when it has seen that there is none.
	Reset string `json:"reset,omitempty"`
}

// earlier is a bundle that was applied, completely unless it says where the process was killed.
type earlier struct {
	golden.Case
	// CutAt is the step of the host (hostsim.Memory.CutAt) before which it was killed.
	CutAt *int `json:"cutAt,omitempty"`
	// CutAfter is the action after which it was killed, as in plan.txt: "stop service kubelet"; or "received 20", for the
	// number of contents.
	CutAfter string `json:"cutAfter,omitempty"`
}

func (e earlier) cut() bool { return e.CutAt != nil || e.CutAfter != "" }

func loadHostCase(t testing.TB, dir string) hostCase {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, golden.CaseFile))
	if err != nil {
		t.Fatal(err)
	}
	var c hostCase
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		t.Fatalf("reading %s: %v", dir, err)
	}
	return c
}

// host is the simulated host of a case.
type host struct {
	*hostsim.Memory
	clock *hostsim.Clock
	// dir is the folder of the case.
	dir string
	// wanted is the bundle of the case.
	wanted shipment
	// secrets are the texts that must not be in a golden.
	secrets map[string]bool
	// reset is hostState.Reset.
	reset string
	// change is made to every bundle.
	change change
	// names are those of bundles in goldens, by digest.
	names map[bundle.Digest]string
}

// prepare creates the host of a case in its state before.
func prepare(t testing.TB, dir string, c hostCase, change change) *host {
	t.Helper()
	clock := hostsim.NewClock(hostsim.Epoch())
	h := &host{clock: clock, dir: dir, change: change, secrets: map[string]bool{}, names: map[bundle.Digest]string{}}
	h.wanted = h.ship(t, c.Case)
	h.names[h.wanted.Manifest.Digest] = "this bundle"
	h.Memory = hostsim.NewMemory(h.facts(t, c.Host.Facts), clock)
	for _, e := range c.Host.Before {
		e.do(t, h)
	}
	for i, b := range c.Host.Bundles {
		h.later()
		if d := h.ship(t, b.Case).Manifest.Digest; h.names[d] == "" {
			h.names[d] = fmt.Sprint("bundle ", i+1)
		}
		h.apply(t, b)
	}
	h.later()
	for _, e := range c.Host.Edits {
		e.do(t, h)
	}
	h.later()
	h.reset = c.Host.Reset
	return h
}

// later advances the clock by an hour.
func (h *host) later() { h.clock.Jump(time.Hour) }

// ship renders the node of a case, and keeps its secrets out of the goldens.
func (h *host) ship(t testing.TB, c golden.Case) shipment {
	t.Helper()
	s := ship(t, h.dir, c, h.change)
	for _, l := range s.Bundle.Layers() {
		variables := slices.Clone(l.Variables)
		for _, e := range l.Environments {
			variables = append(variables, e.Variables...)
		}
		for _, v := range variables {
			if v.Secret() {
				h.secrets[string(v.Content.Data)] = true
			}
		}
	}
	return s
}

// facts returns the facts that the host reports.
func (h *host) facts(t testing.TB, file string) bundle.Facts {
	t.Helper()
	if file == "" {
		if h.wanted.Node.Facts.IsZero() {
			t.Fatal("there are no facts of the host: add host.facts")
		}
		return h.wanted.Node.Facts
	}
	f, err := os.Open(filepath.Join(h.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := bundle.DecodeFacts(f)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(f bundle.Facts) bool { return slices.Contains(f.Addresses, h.wanted.Node.Address) })
	if i < 0 {
		t.Fatalf("%s: no host has the address %s", file, h.wanted.Node.Address)
	}
	return all[i]
}

func (h *host) engine(emit func(protocol.Event)) *applier.Engine {
	return &applier.Engine{Host: h.Memory, Clock: h.clock, Permits: layout.Check, Reset: h.reset, Program: "golden", Owner: "the goldens", Emit: emit}
}

func reader(t testing.TB, s shipment, missing []protocol.Missing) *archive.Reader {
	t.Helper()
	s.Missing = map[bundle.Digest][]int{}
	for _, x := range missing {
		s.Missing[x.Digest] = x.Parts
	}
	var stream bytes.Buffer
	must(t, archive.Send(t.Context(), &stream, s.Request))
	r, err := archive.NewReader(&stream)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (h *host) observe(t testing.TB, s shipment) protocol.Observation {
	t.Helper()
	o, err := h.engine(nil).Observe(t.Context(), s.Manifest, reader(t, s, nil).Contents(), false)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// apply applies an earlier bundle, with the boots that it needs, or kills the process where the case says so.
func (h *host) apply(t testing.TB, b earlier) {
	t.Helper()
	s := h.ship(t, b.Case)
	missing := h.observe(t, s).Missing
	if b.CutAt != nil {
		h.CutAt(*b.CutAt)
	}
	received := 0
	outcome, err := h.engine(func(e protocol.Event) {
		switch {
		case e.Event == protocol.EventReceived:
			received++
			if b.CutAfter == "received "+strconv.Itoa(received) {
				h.CutAt(0)
			}
		case e.Event == protocol.EventAction && b.CutAfter == string(e.Action.Verb)+" "+string(e.Action.Entry):
			h.CutAt(0)
		}
	}).Apply(t.Context(), s.Manifest, reader(t, s, missing), applier.Options{})
	if h.Cut() != b.cut() {
		t.Fatalf("cut: %t, the case says %t; %+v %v", h.Cut(), b.cut(), outcome, err)
	}
	if b.cut() {
		h.Revive()
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Result == protocol.ResultReboot {
		h.boot(t)
		h.apply(t, b)
	}
}

func (h *host) boot(t testing.TB) {
	t.Helper()
	h.later()
	if err := h.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// masked returns a text with keyed digests in place of secrets.
func (h *host) masked(text string) string {
	for secret := range h.secrets {
		text = strings.ReplaceAll(text, secret, "masked:"+key.Of([]byte(secret)).Short())
	}
	return text
}

// named returns a text with the names of bundles in place of their digests.
func (h *host) named(text string) string {
	for digest, name := range h.names {
		text = strings.ReplaceAll(strings.ReplaceAll(text, string(digest), name), digest.Short(), name)
	}
	return text
}
