package golden

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/golden"
	"wmco/payload"
	"wmco/payload/store"
)

// rounds is how often a bundle is applied at most: once, and once after a boot.
const rounds = 2

// TestHosts: what the applier plans for a host, what applying the plan changes, and that nothing differs afterwards. Each
// folder of hosts has
//
//	golden.yaml           a case of one node, and under host: the state of the host before (hostState)
//	want/observed.yaml    that state
//	want/bundle.txt       the digest of the bundle
//	want/plan.txt, .json  the answer of observe
//	want/after.txt        the result, what it changed, and the answers of observe and verify afterwards
func TestHosts(t *testing.T) {
	for _, dir := range caseDirs(t, "hosts") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			h := prepare(t, dir, loadHostCase(t, dir))
			before, o := h.seen(t), h.observe(t, h.wanted)
			if diff := cmp.Diff(before, h.seen(t)); diff != "" && len(before.Records) == 0 {
				t.Errorf("observing changed an unmanaged host:\n%s", diff)
			}
			compareTree(t, golden.WantDir(dir), map[string][]byte{
				"observed.yaml": yamlText(t, before),
				"bundle.txt":    []byte(o.Bundle + "\n"),
				"plan.txt":      []byte(planText(o)),
				"plan.json":     planJSON(t, o),
				"after.txt":     []byte(h.after(t, before, o)),
			})
		})
	}
}

// after applies the bundle and returns the result as text.
func (h *host) after(t *testing.T, before seenHost, o applier.Observation) string {
	t.Helper()
	var out strings.Builder
	for range rounds {
		result := h.applyPlan(t, o)
		fmt.Fprintf(&out, "apply: %s, %d of %s, %s written, %s started\n", result.Result, result.Done, bundle.Count(result.Total, "action"), bundle.Count(result.Written, "file"), bundle.Count(result.Restarted, "service"))
		if result.Result != applier.ResultReboot {
			break
		}
		h.boot(t)
		o = h.observe(t, h.wanted)
		fmt.Fprintf(&out, "the host boots\n\n%s\n", planText(o))
	}
	fmt.Fprintf(&out, "\n%s", changed(before, h.seen(t)))
	h.later()
	again := h.observe(t, h.wanted)
	fmt.Fprintf(&out, "\nobserve: %s", settled(again))
	verified, err := h.engine(nil).Verify(t.Context(), h.wanted.Manifest, reader(t, h.wanted, nil).Contents())
	must(t, err)
	fmt.Fprintf(&out, "verify: %s", settled(verified))
	if again.InSync {
		h.unchanged(t)
	}
	return out.String()
}

// applyPlan applies the bundle with the contents that observe lists as missing, and compares what is done with the plan.
func (h *host) applyPlan(t *testing.T, o applier.Observation) applier.Outcome {
	t.Helper()
	var done []plan.Action
	outcome, err := h.engine(func(e applier.Event) {
		if e.Event == applier.EventAction {
			done = append(done, *e.Action)
		}
	}).Apply(t.Context(), h.wanted.Manifest, reader(t, h.wanted, o.Missing), applier.Options{})
	must(t, err)
	if diff := cmp.Diff(o.Actions, append([]plan.Action{}, done...)); diff != "" {
		t.Errorf("actions (-planned +done):\n%s", diff)
	}
	return outcome
}

// unchanged applies the bundle again, which must change nothing on the host.
func (h *host) unchanged(t *testing.T) {
	t.Helper()
	before := h.Snapshot()
	outcome, err := h.engine(nil).Apply(t.Context(), h.wanted.Manifest, reader(t, h.wanted, nil), applier.Options{})
	if err != nil || outcome.Result != applier.ResultSame {
		t.Errorf("applying again: %s, %v", outcome.Result, err)
	}
	if diff := cmp.Diff(before, h.Snapshot()); diff != "" {
		t.Errorf("applying again changed the host:\n%s", diff)
	}
}

// settled is an observation after which nothing should differ.
func settled(o applier.Observation) string {
	if o.InSync && len(o.Unhealthy)+len(o.Missing)+len(o.Adopt) == 0 {
		return "nothing differs\n" + strings.TrimPrefix(planText(o), "\n")
	}
	return "it differs\n" + planText(o)
}

// TestHostCasesHoldNoSecret: no golden has a secret of the bundles of its case.
func TestHostCasesHoldNoSecret(t *testing.T) {
	for _, dir := range caseDirs(t, "hosts") {
		tree, err := golden.ReadTree(golden.WantDir(dir))
		must(t, err)
		h := prepare(t, dir, loadHostCase(t, dir))
		for path, data := range tree {
			if masked := h.masked(string(data)); masked != string(data) {
				t.Errorf("%s/%s holds a secret", dir, path)
			}
		}
	}
}

// TestPayloadBefore keeps the payload of the previous release, which the case of an upgrade has on its host: the same
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
