package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/hosttest/bundletest"
	"wmco/internal/cli"
)

// older are node agents of this repository's history that users could have: two versions and one version ago.
var older = []string{
	"03351bfeb1e78be0a1c92f68072595e46c0172b8", // N-2: agents pull, and take up what another process has begun
	"831bd4b8fb745dc1357aad9e2042dbc43728a871", // N-1: executables are staged ahead
}

// olderVariable lets the test build older agents, which takes a minute.
const olderVariable = "WMCO_OLDER"

// olderProgram builds the node agent of a commit from a worktree.
func olderProgram(t *testing.T, commit string) string {
	t.Helper()
	if os.Getenv(olderVariable) == "" {
		t.Skipf("older node agents are not built: %s is not set", olderVariable)
	}
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
	path := filepath.Join(t.TempDir(), "wmco-node-"+commit)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./cmd/wmco-node")
	build.Dir = tree
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the node agent of %s: %v\n%s", commit, err, out)
	}
	return path
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
	if !strings.Contains(r.stdout, string(applier.ResultApplied)) && !strings.Contains(r.stdout, string(applier.ResultSame)) {
		t.Fatal(r.stdout)
	}
}
