package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/cli"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/bundletest"
)

// older are node agents of this repository's history that users could have: two versions and one version ago.
var older = []string{
	"03351bfeb1e78be0a1c92f68072595e46c0172b8", // N-2: agents pull, and take up what another process has begun
	"831bd4b8fb745dc1357aad9e2042dbc43728a871", // N-1: executables are staged ahead
}

// olderVariable lets the test build older agents, which takes a minute.
const olderVariable = "WMCO_OLDER"

func needsOlder(t testing.TB) {
	t.Helper()
	if os.Getenv(olderVariable) == "" {
		t.Skipf("older node agents are not built: %s is not set", olderVariable)
	}
}

// olderTree is a worktree of a commit.
func olderTree(t testing.TB, commit string) string {
	t.Helper()
	needsOlder(t)
	git := func(args ...string) error {
		return exec.CommandContext(t.Context(), "git", args...).Run() //nolint:gosec // the arguments are of this test
	}
	if git("cat-file", "-e", commit+"^{commit}") != nil {
		t.Skipf("this repository has no history with commit %s: the node agent of that time is not built", commit)
	}
	tree := filepath.Join(t.TempDir(), "tree")
	if err := git("worktree", "add", "--detach", tree, commit); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command("git", "worktree", "remove", "--force", tree).Run() }) //nolint:gosec // as above; the context of the test has ended
	return tree
}

// olderProgram builds the node agent of a commit from a worktree.
func olderProgram(t testing.TB, commit string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "wmco-node-"+commit)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./cmd/wmco-node")
	build.Dir = olderTree(t, commit)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the node agent of %s: %v\n%s", commit, err, out)
	}
	return path
}

// olderData are the manifest, the annotations of a Node and the records of a host as a commit wrote them.
func olderData(commit string) string { return filepath.Join("testdata", "older", commit[:8]) }

// inOlderTree runs a test of testdata/older/record_test.go with the packages of a commit.
func inOlderTree(t *testing.T, commit, test, variable string) string {
	t.Helper()
	tree := olderTree(t, commit)
	source, err := os.ReadFile(filepath.Join("testdata", "older", "record_test.go"))
	if err == nil {
		err = os.WriteFile(filepath.Join(tree, "cmd", "wmco-node", "record_test.go"), source, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "./cmd/wmco-node", "-run", "^"+test+"$", "-v", "-count=1") //nolint:gosec // the arguments are of this test
	cmd.Dir, cmd.Env = tree, append(os.Environ(), variable)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// TestWhatOlderVersionsWrote is what the data files are made from: -update writes them again.
func TestWhatOlderVersionsWrote(t *testing.T) {
	for _, commit := range older {
		t.Run(commit[:8], func(t *testing.T) {
			if !*update {
				t.Skip("the data files are written again only with -update")
			}
			folder, err := filepath.Abs(olderData(commit))
			if err == nil {
				err = os.MkdirAll(folder, 0o755)
			}
			if err != nil {
				t.Fatal(err)
			}
			inOlderTree(t, commit, "TestRecord", "OLDER_OUT="+folder)
			t.Fatal("rewritten")
		})
	}
}

// TestThisVersionReadsWhatOlderOnesWrote: the annotations of a Node, and the records of a host in each phase in which an agent was cut.
func TestThisVersionReadsWhatOlderOnesWrote(t *testing.T) {
	for _, commit := range older {
		t.Run(commit[:8], func(t *testing.T) {
			read := func(name string) []byte {
				data, err := os.ReadFile(filepath.Join(olderData(commit), name))
				if err != nil {
					t.Fatal(err)
				}
				return data
			}
			m, err := bundle.DecodeManifest(read("manifest.json"))
			if err != nil {
				t.Fatal(err)
			}
			d, err := published.DecodeDesired(string(read("desired.json")))
			if err != nil || d.Bundle != m.Digest || d.MaxImpact != bundle.ImpactRestart {
				t.Errorf("%+v, %v", d, err)
			}
			if l, err := d.Node.Open(nil); err != nil || l.Kind != bundle.LayerNode { // it is inline
				t.Errorf("the node layer: %+v, %v", l, err)
			}
			for _, state := range published.States() {
				r, err := published.DecodeReport(string(read("report-" + string(state) + ".json")))
				if err != nil || r.State != state || r.Desired != m.Digest || r.Program != "older" || r.Retry != "again" || (state == published.StateApplied) != (r.Applied == m.Digest) {
					t.Errorf("%s: %+v, %v", state, r, err)
				}
			}
			journals, err := filepath.Glob(filepath.Join(olderData(commit), "journal-*.json"))
			if err != nil || len(journals) < 4 {
				t.Fatalf("%q, %v", journals, err)
			}
			for _, journal := range append(journals, "") {
				r := opened(t, olderData(commit), journal)
				if len(r.Notes) > 0 || r.Damaged || r.Ledger.AppliedDigest() != m.Digest {
					t.Errorf("%s: %q, applied %s", journal, r.Notes, r.Ledger.AppliedDigest().Short())
				}
				phase := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(journal), "journal-"), ".json")
				switch {
				case journal == "" && r.Interrupted, journal != "" && !r.Interrupted && !r.Finished:
					t.Errorf("%s: interrupted %t", journal, r.Interrupted)
				case r.Interrupted && (strings.ReplaceAll(string(r.Journal.Phase), " ", "-") != phase || r.Journal.Bundle.Manifest.Digest == ""):
					t.Errorf("%s: %+v", journal, r.Journal)
				}
			}
		})
	}
}

// opened are the records of a host which has these files.
func opened(t *testing.T, folder, journal string) *records.Records {
	t.Helper()
	host := hostsim.NewMemory(bundle.Facts{Schema: bundle.FactsSchema, HostName: "a"}, clock{})
	for _, d := range []struct {
		path   string
		access bundle.Access
	}{{bundle.Dir(plan.StateFolder), bundle.AccessUsers}, {plan.StateFolder, bundle.AccessAdmins}} {
		if err := host.MakeDirectory(t.Context(), d.path, d.access); err != nil {
			t.Fatal(err)
		}
	}
	for path, file := range map[string]string{
		records.FileLedger: filepath.Join(folder, "ledger.json"), records.FileStaged: filepath.Join(folder, "staged.json"),
		records.FileJournal: journal,
	} {
		data, err := os.ReadFile(file) //nolint:gosec // a file of this test
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = host.WriteFile(t.Context(), path, bundle.AccessAdmins, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := records.LoadRecords(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestOlderAgentsReadWhatThisVersionPublishes: all of it; and what a later version publishes in another form they refuse, with the reason.
func TestOlderAgentsReadWhatThisVersionPublishes(t *testing.T) {
	for _, commit := range older {
		t.Run(commit[:8], func(t *testing.T) {
			folder := t.TempDir()
			write := func(name string, data []byte, err error) {
				if err == nil {
					err = os.WriteFile(filepath.Join(folder, name), data, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			b := bundletest.New().Bundle(t)
			m, err := b.Manifest()
			if err != nil {
				t.Fatal(err)
			}
			text, err := m.Encode()
			write("manifest.json", text, err)
			write("manifest-next.json", []byte(nextSchema(t, string(text), bundle.Schema)), nil)
			d := published.Desired{
				Bundle: m.Digest, MaxImpact: bundle.ImpactRestart, Namespace: pulledNamespace, Inputs: []published.Input{published.InputMirrors}, Urgent: true, Payload: bundle.Of([]byte("x")),
			}
			for name, l := range map[string]bundle.Layer{"cluster": b.Cluster, "node": b.Node} {
				packed, err := published.Pack(l)
				if err != nil {
					t.Fatal(err)
				}
				*map[string]*published.Layer{"cluster": &d.Cluster, "node": &d.Node}[name] = packed.Layer
				for i, part := range packed.Secrets {
					write(fmt.Sprintf("%s-%d", name, i), part.Data, nil)
				}
			}
			desired, err := d.Encode()
			write("desired.json", []byte(desired), err)
			write("desired-next.json", []byte(nextSchema(t, desired, published.Schema)), nil)
			var verdicts []string
			for line := range strings.Lines(inOlderTree(t, commit, "TestRead", "OLDER_IN="+folder)) {
				if _, verdict, ok := strings.Cut(line, "VERDICT "); ok {
					verdicts = append(verdicts, strings.TrimSpace(verdict))
				}
			}
			slices.Sort(verdicts)
			newer := func(what string, schema int) string {
				return fmt.Sprintf("%s has schema %d, this program reads up to %d: use a newer wmco", what, schema+1, schema)
			}
			want := []string{
				"cluster understood", "desired of the next schema refused as newer: " + newer("desired bundle", published.Schema), "desired understood",
				"manifest of the next schema refused as newer: " + newer("manifest", bundle.Schema), "manifest understood", "node understood",
			}
			if diff := cmp.Diff(want, verdicts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// nextSchema is a text as a later version writes it.
func nextSchema(t *testing.T, text string, schema int) string {
	t.Helper()
	for _, form := range []string{`"schema":%d`, `"schema": %d`} {
		if changed := strings.Replace(text, fmt.Sprintf(form, schema), fmt.Sprintf(form, schema+1), 1); changed != text {
			return changed
		}
	}
	t.Fatal("no schema in it")
	return ""
}

// TestAgentsOfOlderVersionsMoveToThisOne: what this version brings to a host, the agent of an older one applies, killed at any moment, and
// this version goes on from there.
func TestAgentsOfOlderVersionsMoveToThisOne(t *testing.T) {
	for _, commit := range older {
		t.Run(commit[:8], func(t *testing.T) {
			old := simulated{program: olderProgram(t, commit), root: filepath.Join(t.TempDir(), "machine")}
			now := simulated{program: program(t), root: old.root}
			if r := old.run(t, nil, "machine", "create"); r.status != 0 {
				t.Fatal(r.stderr)
			}
			random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
			first := bundletest.New()
			second := first.Changed(func(n *bundletest.Node) {
				n.Programs[`C:\k\kubelet.exe`] = strings.Repeat("newer kubelet", 1000)
				n.Files[`C:\k\kubelet.conf`], n.CAs = "kind: KubeletConfiguration\nof: the newer one\n", []string{"second CA", "third CA"}
			})
			old.mustApply(t, first)
			before := old.files(t)

			// An operator of this version copies executables with its own program, while the older agent works.
			if r := now.run(t, second.Archive(t, now.missing(t, second)), "stage"); r.status != 0 {
				t.Fatalf("stage: %d, %s", r.status, r.stderr)
			}
			if o := old.observe(t, second); len(o.Missing) > 3 || o.InSync {
				t.Errorf("the older agent lacks %d contents", len(o.Missing))
			}
			if diff := cmp.Diff(before, old.files(t)); diff != "" {
				t.Errorf("staging changes what runs (-want +got):\n%s", diff)
			}

			for i := range 2 * kills(t) / 10 {
				n := []bundletest.Node{second, first}[i%2]
				cmd := old.command(t, n.Archive(t, old.missing(t, n)), "apply")
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
				_ = cmd.Process.Kill() // it may have ended
				_ = cmd.Wait()         // it was killed
				// Whichever of the two agents starts next, it understands what the killed one left.
				next := []simulated{now, old}[random.IntN(2)]
				if next.program == now.program {
					next.mustApply(t, n)
					// What this version has written, the older one understands or refuses clearly.
					r := old.run(t, n.Archive(t, nil), "observe")
					if r.status == cli.ExitUsage && !strings.Contains(r.stderr, "newer") {
						t.Fatalf("the older agent refuses without a reason: %s", r.stderr)
					}
				}
			}
			now.mustApply(t, second)
			if o := now.observe(t, second); !o.InSync || o.Interrupted != "" || o.Applied != o.Bundle {
				t.Errorf("%+v", o)
			}
			fresh := newSimulated(t, now.program)
			fresh.mustApply(t, second)
			if diff := cmp.Diff(fresh.files(t), now.files(t)); diff != "" {
				t.Errorf("not as on a host that only had this version (-want +got):\n%s", diff)
			}
		})
	}
}

// mustApply applies a bundle with what the host lacks.
func (s simulated) mustApply(t *testing.T, n bundletest.Node) {
	t.Helper()
	r := s.run(t, n.Archive(t, s.missing(t, n)), "apply")
	if r.status != 0 {
		t.Fatalf("apply: %d, %s%s", r.status, r.stdout, r.stderr)
	}
	if !strings.Contains(r.stdout, string(protocol.ResultApplied)) && !strings.Contains(r.stdout, string(protocol.ResultSame)) {
		t.Fatal(r.stdout)
	}
}
