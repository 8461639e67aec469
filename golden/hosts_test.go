package golden

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"wmco/applier"
	"wmco/internal/count"
	"wmco/internal/golden"
	"wmco/payload"
	"wmco/payload/store"
)

// rounds is how often a bundle is applied at most: once, and once after a boot.
const rounds = 2

// TestHostsGetTheirGoldens: what the applier plans for a machine, what applying then changes, and that nothing differs
// afterwards. Each folder of hosts holds
//
//	golden.yaml           a case of one node, and under machine: what the machine is before (machineCase)
//	want/observed.yaml    that machine
//	want/bundle.txt       the digest of the bundle
//	want/plan.txt, .json  what observe answers
//	want/after.txt        how applying ended, what was different then, and what observe and verify answer afterwards
func TestHostsGetTheirGoldens(t *testing.T) {
	for _, dir := range caseDirs(t, "hosts") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			m := prepare(t, dir, loadHostCase(t, dir))
			before, o := m.seen(t), m.observe(t, m.wanted)
			if diff := cmp.Diff(before, m.seen(t)); diff != "" && len(before.Records) == 0 {
				t.Errorf("observing changed a machine that is not ours:\n%s", diff)
			}
			compareTree(t, golden.WantDir(dir), map[string][]byte{
				"observed.yaml": yamlText(t, before),
				"bundle.txt":    []byte(o.Bundle + "\n"),
				"plan.txt":      []byte(planText(o)),
				"plan.json":     planJSON(t, o),
				"after.txt":     []byte(m.after(t, before, o)),
			})
		})
	}
}

// after applies the bundle and tells what came of it.
func (m *machine) after(t *testing.T, before seenMachine, o applier.Observation) string {
	t.Helper()
	var out strings.Builder
	for range rounds {
		result := m.applyPlan(t, o)
		fmt.Fprintf(&out, "apply: %s, %d of %s, %s written, %s started\n", result.Result, result.Done, count.Of(result.Total, "action"), count.Of(result.Written, "file"), count.Of(result.Restarted, "service"))
		if result.Result != applier.ResultReboot {
			break
		}
		m.boot(t)
		o = m.observe(t, m.wanted)
		fmt.Fprintf(&out, "the machine boots\n\n%s\n", planText(o))
	}
	fmt.Fprintf(&out, "\n%s", changed(before, m.seen(t)))
	m.later()
	again := m.observe(t, m.wanted)
	fmt.Fprintf(&out, "\nobserve: %s", settled(again))
	verified, err := m.engine(nil).Verify(t.Context(), reader(t, m.wanted, nil))
	must(t, err)
	fmt.Fprintf(&out, "verify: %s", settled(verified))
	if again.InSync {
		m.unchanged(t)
	}
	return out.String()
}

// applyPlan applies the bundle with what observe says is missing, and holds what is done to what was planned.
func (m *machine) applyPlan(t *testing.T, o applier.Observation) applier.Outcome {
	t.Helper()
	var done []applier.Action
	outcome, err := m.engine(func(e applier.Event) {
		if e.Event == applier.EventAction {
			done = append(done, *e.Action)
		}
	}).Apply(t.Context(), reader(t, m.wanted, o.Missing), applier.Options{})
	must(t, err)
	if diff := cmp.Diff(o.Actions, append([]applier.Action{}, done...)); diff != "" {
		t.Errorf("what was done is not what was planned (-planned +done):\n%s", diff)
	}
	return outcome
}

// unchanged: applying once more is the same, and changes nothing on the machine.
func (m *machine) unchanged(t *testing.T) {
	t.Helper()
	before := m.Snapshot()
	outcome, err := m.engine(nil).Apply(t.Context(), reader(t, m.wanted, nil), applier.Options{})
	if err != nil || outcome.Result != applier.ResultSame {
		t.Errorf("applying again: %s, %v", outcome.Result, err)
	}
	if diff := cmp.Diff(before, m.Snapshot()); diff != "" {
		t.Errorf("applying again changed the machine:\n%s", diff)
	}
}

// settled is an observation of which nothing is expected.
func settled(o applier.Observation) string {
	if o.InSync && len(o.Unhealthy)+len(o.Missing)+len(o.Adopt) == 0 {
		return "nothing differs\n" + strings.TrimPrefix(planText(o), "\n")
	}
	return "it differs\n" + planText(o)
}

// TestHostCasesHoldNoSecret: neither texts that the example clusters mark, nor the keys of their records.
func TestHostCasesHoldNoSecret(t *testing.T) {
	for _, dir := range caseDirs(t, "hosts") {
		tree, err := golden.ReadTree(golden.WantDir(dir))
		must(t, err)
		m := prepare(t, dir, loadHostCase(t, dir))
		for path, data := range tree {
			if masked := m.masked(string(data)); masked != string(data) {
				t.Errorf("%s/%s holds a secret", dir, path)
			}
		}
	}
}

// TestPayloadBefore keeps the payload of the release before, which the case of an upgrade has on its machine: the same
// executables with other contents of the same size.
func TestPayloadBefore(t *testing.T) {
	from, err := store.Open("payload")
	must(t, err)
	list := store.List{Schema: store.Schema}
	tree := map[string][]byte{}
	enc, err := zstd.NewWriter(nil)
	must(t, err)
	for _, e := range from.Entries() {
		raw := []byte("This was once  " + e.Name + ".exe.\n")
		stored := enc.EncodeAll(raw, nil)
		e.Raw, e.Stored = blob(raw), blob(stored)
		if e.Name == payload.Agent {
			e.Path, e.Version = payload.AgentPath(e.Raw.Digest), "v0.9.0"
		}
		list.Executables = append(list.Executables, e)
		tree[e.File()] = stored
	}
	data, err := list.Encode()
	must(t, err)
	tree[store.ListFile] = data
	compareTree(t, filepath.Join("hosts", "executables-upgraded", "payload"), tree)
}
