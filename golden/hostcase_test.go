package golden

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"wmco/applier"
	"wmco/applier/hosttest"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/internal/golden"
)

// hostCase is golden.yaml of a folder below hosts: a bundle, and the machine that it comes to.
type hostCase struct {
	golden.Case
	Machine machineCase `json:"machine"`
}

// machineCase is what a machine is before: an empty one that says facts of itself, to which bundles were applied one after
// the other, and which somebody changed then.
type machineCase struct {
	// Facts is a file of facts, relative to the case's folder; without it they are those that the bundle was rendered with.
	Facts string `json:"facts,omitempty"`
	// Before is what somebody did to the machine before the first bundle.
	Before  []edit    `json:"before,omitempty"`
	Bundles []earlier `json:"bundles,omitempty"`
	Edits   []edit    `json:"edits,omitempty"`
}

// earlier is a bundle that was applied, whole unless it says where the process was killed.
type earlier struct {
	golden.Case
	// CutAt is the step of the machine (hosttest.Memory.CutAt) before which it was.
	CutAt *int `json:"cutAt,omitempty"`
	// CutAfter is the action after which it was, as in plan.txt: "stop service kubelet"; or "received 20", for the number of
	// contents.
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

// machine is the machine of a case.
type machine struct {
	*hosttest.Memory
	clock *hosttest.Clock
	// dir is the folder of the case.
	dir string
	// wanted is the bundle of the case.
	wanted shipment
	// secrets are the texts that no golden may hold.
	secrets map[string]bool
}

// prepare makes the machine of a case as it is before.
func prepare(t testing.TB, dir string, c hostCase) *machine {
	t.Helper()
	clock := hosttest.NewClock(hosttest.Epoch())
	m := &machine{clock: clock, dir: dir, wanted: ship(t, dir, c.Case), secrets: map[string]bool{}}
	m.hide(m.wanted)
	m.Memory = hosttest.NewMemory(m.facts(t, c.Machine.Facts), clock)
	for _, e := range c.Machine.Before {
		e.do(t, m)
	}
	for _, b := range c.Machine.Bundles {
		m.later()
		m.apply(t, b)
	}
	m.later()
	for _, e := range c.Machine.Edits {
		e.do(t, m)
	}
	m.later()
	return m
}

// later lets an hour pass.
func (m *machine) later() { m.clock.Jump(time.Hour) }

// hide keeps the secrets of a bundle out of the goldens.
func (m *machine) hide(s shipment) {
	for _, l := range s.Bundle.Layers() {
		variables := slices.Clone(l.Variables)
		for _, e := range l.Environments {
			variables = append(variables, e.Variables...)
		}
		for _, v := range variables {
			if v.Secret() {
				m.secrets[string(v.Content.Data)] = true
			}
		}
	}
}

// facts are what the machine says of itself.
func (m *machine) facts(t testing.TB, file string) bundle.Facts {
	t.Helper()
	if file == "" {
		if m.wanted.Node.Facts.IsZero() {
			t.Fatal("nothing is known of the machine: write machine.facts")
		}
		return m.wanted.Node.Facts
	}
	f, err := os.Open(filepath.Join(m.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := bundle.DecodeFacts(f)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(f bundle.Facts) bool { return slices.Contains(f.Addresses, m.wanted.Node.Address) })
	if i < 0 {
		t.Fatalf("%s: no machine has the address %s", file, m.wanted.Node.Address)
	}
	return all[i]
}

func (m *machine) engine(emit func(applier.Event)) *applier.Engine {
	return &applier.Engine{Host: m.Memory, Clock: m.clock, Program: "golden", Owner: "the goldens", Emit: emit}
}

func reader(t testing.TB, s shipment, missing []applier.Missing) *archive.Reader {
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

func (m *machine) observe(t testing.TB, s shipment) applier.Observation {
	t.Helper()
	o, err := m.engine(nil).Observe(t.Context(), reader(t, s, nil), false)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// apply brings the machine to an earlier bundle, through boots, or kills the process where the case says so.
func (m *machine) apply(t testing.TB, b earlier) {
	t.Helper()
	s := ship(t, m.dir, b.Case)
	m.hide(s)
	missing := m.observe(t, s).Missing
	if b.CutAt != nil {
		m.CutAt(*b.CutAt)
	}
	received := 0
	outcome, err := m.engine(func(e applier.Event) {
		switch {
		case e.Event == applier.EventReceived:
			received++
			if b.CutAfter == "received "+strconv.Itoa(received) {
				m.CutAt(0)
			}
		case e.Event == applier.EventAction && b.CutAfter == string(e.Action.Verb)+" "+string(e.Action.Entry):
			m.CutAt(0)
		}
	}).Apply(t.Context(), reader(t, s, missing), applier.Options{})
	if m.Cut() != b.cut() {
		t.Fatalf("cut: %t, the case says %t; %+v %v", m.Cut(), b.cut(), outcome, err)
	}
	if b.cut() {
		m.Revive()
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Result == applier.ResultReboot {
		m.boot(t)
		m.apply(t, b)
	}
}

func (m *machine) boot(t testing.TB) {
	t.Helper()
	m.later()
	if err := m.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// masked is a text with keyed digests in the place of secrets.
func (m *machine) masked(text string) string {
	for secret := range m.secrets {
		text = strings.ReplaceAll(text, secret, "masked:"+key.Of([]byte(secret)).Short())
	}
	return text
}
