package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/protocol"
	"wmco/internal/cli"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/test/seed"
)

// program builds wmco-node once for a test.
func program(t testing.TB) string {
	t.Helper()
	return linkedProgram(t, "")
}

// linkedProgram builds wmco-node with flags of the linker.
func linkedProgram(t testing.TB, flags string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("simulated machines are for other systems")
	}
	path := filepath.Join(t.TempDir(), "wmco-node")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags", flags, "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// simulated is a host in a folder, and the program on it.
type simulated struct{ program, root string }

func newSimulated(t testing.TB, program string) simulated {
	t.Helper()
	s := simulated{program, filepath.Join(t.TempDir(), "machine")}
	if r := s.run(t, nil, "machine", "create"); r.status != 0 {
		t.Fatal(r.stderr)
	}
	return s
}

type answer struct {
	status         int
	stdout, stderr string
}

func (s simulated) command(t testing.TB, stdin []byte, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.program, args...)
	cmd.Env = append(os.Environ(), "WMCO_NODE_ROOT="+s.root)
	cmd.Stdin = bytes.NewReader(stdin)
	return cmd
}

func (s simulated) run(t testing.TB, stdin []byte, args ...string) answer {
	t.Helper()
	cmd := s.command(t, stdin, args...)
	var out, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return answer{cmd.ProcessState.ExitCode(), out.String(), complaints.String()}
}

// missing returns the contents that the host lacks.
func (s simulated) missing(t testing.TB, n bundletest.Node) []protocol.Missing {
	t.Helper()
	return s.observe(t, n).Missing
}

func (s simulated) observe(t testing.TB, n bundletest.Node) protocol.Observation {
	t.Helper()
	r := s.run(t, n.Archive(t, nil), "observe")
	if r.status > cli.ExitDiffers {
		t.Fatalf("observe: %d, %s", r.status, r.stderr)
	}
	o, err := protocol.DecodeObservation([]byte(r.stdout))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// files are all files of the host with their contents, without the records.
func (s simulated) files(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(s.root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "ProgramData") {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(s.root, path)
		// Of anything but files: status and configuration, without process IDs and times.
		if strings.HasPrefix(rel, ".machine/services") {
			var x struct{ Name, CommandLine, Status string }
			if err := json.Unmarshal(data, &x); err != nil {
				return err
			}
			data = fmt.Appendf(nil, "%+v", x)
		} else if strings.HasPrefix(rel, ".machine") {
			return err
		}
		all[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// kills is how often a process is killed: WMCO_PROCESS_KILLS, or 20.
func kills(t testing.TB) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("WMCO_PROCESS_KILLS"))
	if err != nil {
		return 20
	}
	return n
}

// killedAt returns a process that kills itself before the n-th change of the host, from 0.
func (s simulated) killedAt(t testing.TB, n int, stdin []byte, args ...string) *exec.Cmd {
	t.Helper()
	cmd := s.command(t, stdin, args...)
	cmd.Env = append(cmd.Env, "WMCO_NODE_KILL_AT="+strconv.Itoa(n))
	return cmd
}

// wasKilled reports whether a process that has ended was killed.
func wasKilled(cmd *exec.Cmd) bool {
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// TestAHostConvergesAfterKills kills processes with SIGKILL while they apply different bundles, and then lets one finish.
func TestAHostConvergesAfterKills(t *testing.T) {
	t.Parallel()
	random := seed.New(t)
	exe := program(t)
	first := bundletest.New()
	nodes := []bundletest.Node{
		first,
		first.Changed(func(n *bundletest.Node) {
			n.Files[`C:\k\kubelet.conf`], n.CAs = "another", []string{"third CA"}
			n.Programs[`C:\k\kubelet.exe`] = strings.Repeat("a newer kubelet", 100000)
			delete(n.Files, `C:\k\containerd\registries\a.io\hosts.toml`)
		}),
		first.Changed(func(n *bundletest.Node) {
			n.Files, n.Services = map[string]string{`C:\k\only.conf`: "x"}, n.Services[:1]
			n.SecretProxy, n.Proxy = "", nil
		}),
	}
	m := newSimulated(t, exe)
	foreign := filepath.Join(m.root, "C", "k", "foreign.txt")
	if err := os.MkdirAll(filepath.Dir(foreign), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(foreign, []byte("unmanaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	killed, next := 0, 0
	for i := range kills(t) {
		n, at := nodes[next], random.IntN(60)
		if i == 0 {
			at = 0 // this one is killed for certain: the host has nothing yet
		}
		next = (next + 1 + random.IntN(len(nodes)-1)) % len(nodes) // another one
		cmd := m.killedAt(t, at, n.Archive(t, m.missing(t, n)), "apply")
		out, err := cmd.CombinedOutput()
		switch {
		case wasKilled(cmd):
			killed++
		case err != nil:
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, n := range nodes {
		want := newSimulated(t, exe)
		for _, x := range []simulated{want, m} {
			if r := x.run(t, n.Archive(t, x.missing(t, n)), "apply"); r.status != 0 {
				t.Fatalf("status %d: %s%s", r.status, r.stdout, r.stderr)
			}
		}
		got := m.files(t)
		if got["C/k/foreign.txt"] != "unmanaged" {
			t.Error("an unmanaged file was changed")
		}
		delete(got, "C/k/foreign.txt")
		if diff := cmp.Diff(want.files(t), got); diff != "" {
			t.Errorf("after %d kills (-want +got):\n%s", killed, diff)
		}
		if o := m.observe(t, n); !o.InSync {
			t.Errorf("%+v", o)
		}
	}
	if killed == 0 {
		t.Error("no process was killed before its end")
	}
	t.Logf("%d of %d killed", killed, kills(t))
}
