package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/bundle/archive"
	"wmco/internal/sshtest"
	"wmco/internal/sshtest/simulated"
)

// nodeProgram is the node program itself, which on this machine works on a simulated one.
var nodeProgram = sync.OnceValues(func() (Program, error) {
	path, err := programs.Go(context.Background(), "wmco/cmd/wmco-node", "-ldflags", "-s -w")
	if err != nil {
		return Program{}, err
	}
	return FileProgram(path, agentPath)
})

// realMachine is a server with a simulated machine, on which the node program has never been.
func realMachine(t testing.TB, o sshtest.Options) (*sshtest.Server, Program) {
	t.Helper()
	p, err := nodeProgram()
	if err != nil {
		t.Fatal(err)
	}
	s := programs.Start(t, o)
	from, err := p.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	create := exec.CommandContext(t.Context(), from.(*os.File).Name(), "--root", s.Root, "machine", "create")
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("making the machine: %v\n%s", err, out)
	}
	return s, p
}

// differs are the files of the request that the machine has not, or not so.
func differs(t *testing.T, s *sshtest.Server, r Request) []string {
	t.Helper()
	contents := map[string]archive.Content{}
	for _, c := range r.Source.Contents() {
		contents[string(c.Digest)] = c
	}
	var all []string
	for _, f := range r.Manifest.Layers[0].Layer.Files {
		c := contents[string(f.Digest)]
		stored, err := r.Source.Open(c.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		want, err := io.ReadAll(archive.Decode(stored, c))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(s.Path(f.Path)); !bytes.Equal(got, want) {
			all = append(all, f.Path)
		}
	}
	return all
}

func TestTheNodeProgramItselfMakesAMachineRight(t *testing.T) {
	for _, shell := range []simulated.Shell{simulated.ShellCmd, simulated.ShellPowerShell, simulated.ShellSh} {
		s, p := realMachine(t, sshtest.Options{Settings: simulated.Settings{Shell: shell}})
		c := NewClient(dialer(t, s), p)
		defer c.Close()
		m := c.Machine(at(s, s.Address))
		for _, step := range []struct {
			what    string
			do      func()
			version int
			result  applier.Result
			written int
		}{
			{"first contact", func() {}, 0, applier.ResultApplied, 30},
			{"nothing differs", func() {}, 0, applier.ResultSame, 0},
			{"one file differs", func() {}, 1, applier.ResultApplied, 1},
			{"somebody edits a file", func() { write(t, s.Path(`C:\k\file-007`), "edited") }, 1, applier.ResultApplied, 1},
			{"nothing differs again", func() {}, 1, applier.ResultSame, 0},
		} {
			step.do()
			want := small(t, 30, step.version)
			r, err := m.Apply(t.Context(), want, ApplyOptions{}, quiet)
			if err != nil || r.Result != step.result || r.Written != step.written {
				t.Fatalf("%s, %s: %q, %d written, %v", shell, step.what, r.Result, r.Written, err)
			}
			if list := differs(t, s, want); len(list) > 0 {
				t.Fatalf("%s, %s: differ: %v", shell, step.what, list)
			}
			o, err := m.Verify(t.Context(), want)
			if err != nil || !o.InSync {
				t.Fatalf("%s, %s: %+v, %v", shell, step.what, o, err)
			}
		}
		if r, err := m.Apply(t.Context(), small(t, 30, 2), ApplyOptions{DryRun: true}, quiet); err != nil || r.Result != applier.ResultPlanned {
			t.Errorf("dry run: %q, %v", r.Result, err)
		}
		if list := differs(t, s, small(t, 30, 1)); len(list) > 0 {
			t.Errorf("the dry run changed %v", list)
		}
	}
}

// PowerShell hands stdin on as text, so what the node program reads must be text once that is known.
func TestUnderPowerShellTheNodeProgramGetsLargeContentsAsText(t *testing.T) {
	s, p := realMachine(t, sshtest.Options{Settings: simulated.Settings{Shell: simulated.ShellPowerShell, Noise: "\ufeff\r\n"}})
	c := NewClient(dialer(t, s), p)
	defer c.Close()
	m := c.Machine(at(s, s.Address))
	want := large(t, 9<<20)
	if r, err := m.Apply(t.Context(), want, ApplyOptions{}, quiet); err != nil || r.Result != applier.ResultApplied {
		t.Fatalf("%q, %v", r.Result, err)
	}
	if list := differs(t, s, want); len(list) > 0 {
		t.Errorf("differ: %v", list)
	}
	if o, err := m.Verify(t.Context(), want); err != nil || !o.InSync {
		t.Errorf("%+v, %v", o, err)
	}
	var words []string
	for _, line := range s.Starts() {
		_, said, _ := strings.Cut(line, " ")
		words = append(words, said)
	}
	// First it is not there, then it cannot read the archive; from then on it gets text.
	first := []string{"observe", "", "version", "observe"}
	if diff := cmp.Diff(append(first, "observe --text", "apply --text", "verify --text"), words); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConfirmationOverAnotherConnection(t *testing.T) {
	s, p := realMachine(t, sshtest.Options{})
	c := NewClient(dialer(t, s), p)
	defer c.Close()
	m := c.Machine(at(s, s.Address))
	want := small(t, 3, 0)
	confirm := func(e applier.Event) {
		if e.Event == applier.EventConfirm {
			go func() {
				if err := m.Confirm(t.Context(), want.Manifest.Digest); err != nil {
					t.Error(err)
				}
			}()
		}
	}
	if r, err := m.Apply(t.Context(), want, ApplyOptions{ConfirmWithin: time.Minute}, confirm); err != nil || r.Result != applier.ResultApplied {
		t.Errorf("confirmed: %q, %v", r.Result, err)
	}
	other := small(t, 3, 1)
	if r, err := m.Apply(t.Context(), other, ApplyOptions{ConfirmWithin: time.Second}, quiet); err != nil || r.Result != applier.ResultRolledBack {
		t.Errorf("not confirmed: %q, %v", r.Result, err)
	}
	if list := differs(t, s, want); len(list) > 0 {
		t.Errorf("not put back: %v", list)
	}
}

// The connection is cut at random bytes of everything, again and again; the machine ends up right.
func TestAMachineEndsUpRightWhateverIsCut(t *testing.T) {
	for _, way := range []struct {
		name     string
		shell    simulated.Shell
		versions int
		// each is who brings the machine to versions: one client for all of them has sessions and guesses.
		each func(func() *Client) func() *Client
	}{
		{"cmd", simulated.ShellCmd, 12, func(c func() *Client) func() *Client { return c }},
		{"PowerShell", simulated.ShellPowerShell, 4, func(c func() *Client) func() *Client { return c }},
		{"one client", simulated.ShellCmd, 24, sync.OnceValue[*Client]},
	} {
		t.Run(way.name, func(t *testing.T) { cutAgainAndAgain(t, way.shell, way.versions, way.each) })
	}
}

// cutAgainAndAgain brings a machine to one version after another over a line that breaks.
func cutAgainAndAgain(t *testing.T, shell simulated.Shell, versions int, each func(func() *Client) func() *Client) {
	s, p := realMachine(t, sshtest.Options{Settings: simulated.Settings{Shell: shell}})
	line := sshtest.NewLine(t, s.Address, sshtest.LineOptions{})
	d := dialer(t, s)
	newClient := each(func() *Client {
		c := NewClient(d, p)
		t.Cleanup(func() { _ = c.Close() })
		return c
	})
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	cuts := 0
	for version := range versions {
		want := small(t, 30, version)
		for range 3 {
			line.CutAfter(random.Int64N(20000) >> (version % 5)) // from a few bytes to more than a new connection takes
			if version == 0 {
				line.CutAfter(random.Int64N(p.Size + 20000))
			}
			_, err := newClient().Machine(at(s, line.Address)).Apply(t.Context(), want, ApplyOptions{}, quiet)
			line.CutAfter(-1)
			if err != nil {
				cuts++
			}
			if err != nil && !Retryable(err) && kind(err) != "program" {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
		r, err := newClient().Machine(at(s, line.Address)).Apply(t.Context(), want, ApplyOptions{Wait: time.Minute}, quiet)
		if err != nil || r.Result != applier.ResultApplied && r.Result != applier.ResultSame {
			t.Fatalf("seed %d, version %d: %q, %v", seed, version, r.Result, err)
		}
		if list := differs(t, s, want); len(list) > 0 {
			t.Fatalf("seed %d, version %d: %v", seed, version, list)
		}
	}
	if cuts == 0 {
		t.Error("nothing was cut")
	}
	t.Log(fmt.Sprint(cuts, " cuts, ", len(s.Starts()), " programs started"))
}
