package golden

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/golden"
	"wmco/payload"
	"wmco/payload/store"
)

// rounds is how often a bundle is applied at most: once, and once after a boot.
const rounds = 2

// TestHosts: what the applier plans for a host, what applying the plan changes, and that nothing differs afterwards. Each
// folder of hosts has golden.yaml, a case of one node, and under host the state of the host before (hostState); and want/host.txt, or want/host.diff
// with what differs from another case, with
//
//	observed.txt          that state
//	plan.txt, plan.json   the answer of observe
//	after.txt             the result, what it changed, and the answers of observe and verify afterwards
//
// Digests of bundles have names there: "this bundle", and "bundle 1" for the first one that was applied before.
func TestHosts(t *testing.T) {
	hosts := hostTrees{}
	for _, dir := range caseDirs(t, "hosts") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			compareTree(t, golden.WantDir(dir), hosts.texts(t, dir))
		})
	}
}

// hostTrees are the texts of hosts that were made, by folder.
type hostTrees struct {
	change change
	made   memo[map[string][]byte]
}

// texts returns what want/ of a case has.
func (x *hostTrees) texts(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	like, tree := loadHostCase(t, dir).Host.Like, x.tree(t, dir)
	if like == "" {
		return map[string][]byte{"host.txt": wholeText(t, tree)}
	}
	title := fmt.Sprintf("%s: what differs from %s", filepath.Base(dir), filepath.Base(like))
	return map[string][]byte{"host.diff": differences(title, essentials(t, x.tree(t, filepath.Join(dir, like))), essentials(t, tree))}
}

// tree returns the texts of a host, which are made once.
func (x *hostTrees) tree(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	return x.made.get(t, dir, func() map[string][]byte { return makeHost(t, dir, x.change) })
}

// makeHost observes the host of a case, and applies its bundle.
func makeHost(t testing.TB, dir string, c change) map[string][]byte {
	t.Helper()
	h := prepare(t, dir, loadHostCase(t, dir), c)
	before, o := h.seen(t), h.observe(t, h.wanted)
	if diff := cmp.Diff(before, h.seen(t)); diff != "" && len(before.Records) == 0 {
		t.Errorf("observing changed an unmanaged host:\n%s", diff)
	}
	tree := map[string][]byte{
		"observed.txt": []byte(before.text()),
		"plan.txt":     []byte(planText(o)),
		planFile:       planJSON(t, o),
		"after.txt":    []byte(h.after(t, before, o)),
	}
	for name, data := range tree {
		if text := string(data); h.masked(text) != text {
			t.Errorf("%s: %s holds a secret", dir, name)
		}
		tree[name] = []byte(h.named(string(data)))
	}
	checkMasked(t, dir, tree)
	return tree
}

// after applies the bundle and returns the result as text.
func (h *host) after(t testing.TB, before seenHost, o protocol.Observation) string {
	t.Helper()
	var out strings.Builder
	for range rounds {
		result := h.applyPlan(t, o)
		fmt.Fprintf(&out, "apply: %s, %s\n", result.Result, done(result, o.Actions))
		if result.Result != protocol.ResultReboot {
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

// done says what was done of a plan.
func done(r applier.Outcome, planned []protocol.Action) string {
	count := func(v protocol.Verb) (n int) {
		for _, a := range planned {
			if a.Verb == v {
				n++
			}
		}
		return n
	}
	if r.Done == len(planned) && r.Total == len(planned) && r.Written == count(protocol.VerbWrite) && r.Restarted == count(protocol.VerbStart) {
		return "as planned"
	}
	return fmt.Sprintf("%d of %s, %s written, %s started", r.Done, bundle.Count(r.Total, "action"), bundle.Count(r.Written, "file"), bundle.Count(r.Restarted, "service"))
}

// applyPlan applies the bundle with the contents that observe lists as missing, and compares what is done with the plan.
func (h *host) applyPlan(t testing.TB, o protocol.Observation) applier.Outcome {
	t.Helper()
	var done []protocol.Action
	outcome, err := h.engine(func(e protocol.Event) {
		if e.Event == protocol.EventAction {
			done = append(done, *e.Action)
		}
	}).Apply(t.Context(), h.wanted.Manifest, reader(t, h.wanted, o.Missing), applier.Options{})
	must(t, err)
	if diff := cmp.Diff(o.Actions, append([]protocol.Action{}, done...)); diff != "" {
		t.Errorf("actions (-planned +done):\n%s", diff)
	}
	return outcome
}

// unchanged applies the bundle again, which must change nothing on the host.
func (h *host) unchanged(t testing.TB) {
	t.Helper()
	before := h.Snapshot()
	outcome, err := h.engine(nil).Apply(t.Context(), h.wanted.Manifest, reader(t, h.wanted, nil), applier.Options{})
	if err != nil || outcome.Result != protocol.ResultSame {
		t.Errorf("applying again: %s, %v", outcome.Result, err)
	}
	if diff := cmp.Diff(before, h.Snapshot()); diff != "" {
		t.Errorf("applying again changed the host:\n%s", diff)
	}
}

// settled is an observation after which nothing should differ.
func settled(o protocol.Observation) string {
	if o.InSync && len(o.Unhealthy)+len(o.Missing)+len(o.Adopt) == 0 {
		return "nothing differs\n" + strings.TrimPrefix(planText(o), "\n")
	}
	return "it differs\n" + planText(o)
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
