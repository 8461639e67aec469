package ssh

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle/archive"
	"wmco/internal/test/seed"
	"wmco/internal/test/sshtest"
	"wmco/internal/test/sshtest/simulated"
)

func TestARunThatIsCutAtAnyByteIsResumedByTheNextOne(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	const content = 10 << 20
	want := large(t, content)
	whole := bytesOfFirstRun(t, s, want)
	random := seed.New(t)
	// In the handshake, in the program, in the content that follows it, and in the run of the agent.
	cuts := []int64{100, 5000, (whole - content) / 2, whole - content/2, whole - 3000, random.Int64N(whole)}
	if allCuts() {
		cuts = append(cuts, 1, 1000, 3000, 6000, 7000, whole-20000, whole-6000, whole-500, whole-50)
		for range 6 {
			cuts = append(cuts, random.Int64N(whole))
		}
	}
	kinds := map[string]int{}
	for _, cut := range cuts {
		s := programs.Start(t, sshtest.Options{})
		line := sshtest.NewLine(t, s.Address, sshtest.LineOptions{})
		d := dialer(t, s)
		line.CutAfter(cut)
		_, err := client(t, d).AgentFor(at(s, line.Address)).Apply(t.Context(), want, remote.ApplyOptions{}, quiet)
		kinds[kind(err)]++
		if err == nil {
			t.Logf("cut at %d: it succeeded", cut)
		} else if !remote.IsRetryable(err) && kind(err) != "program" {
			t.Errorf("cut at %d: %s: %v", cut, kind(err), err)
		}
		line.CutAfter(-1)
		r, err := client(t, d).AgentFor(at(s, line.Address)).Apply(t.Context(), want, remote.ApplyOptions{}, quiet)
		if err != nil || r.Result != protocol.ResultApplied && r.Result != protocol.ResultSame {
			t.Fatalf("after the cut at %d: %q, %v", cut, r.Result, err)
		}
		if !uploaded(t, s) {
			t.Errorf("after the cut at %d the agent is not complete", cut)
		}
	}
	t.Logf("%d bytes, %d cuts: %v", whole, len(cuts), kinds)
	if kinds["interrupted"] == 0 || kinds["program"] == 0 {
		t.Error("not every phase was cut")
	}
}

func bytesOfFirstRun(t *testing.T, s *sshtest.Server, want remote.Request) int64 {
	t.Helper()
	line := sshtest.NewLine(t, s.Address, sshtest.LineOptions{})
	if _, err := client(t, dialer(t, s)).AgentFor(at(s, line.Address)).Apply(t.Context(), want, remote.ApplyOptions{}, quiet); err != nil {
		t.Fatal(err)
	}
	stats := line.Stats()
	return stats.Up + stats.Down
}

func TestPartsThatArrivedBeforeACutAreNotSentAgain(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	line := sshtest.NewLine(t, s.Address, sshtest.LineOptions{})
	m := client(t, dialer(t, s)).AgentFor(at(s, line.Address))
	if _, err := m.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := large(t, 22<<20)
	line.CutAfter(15 << 20)
	if _, err := m.Apply(t.Context(), want, remote.ApplyOptions{}, quiet); kind(err) != "interrupted" {
		t.Fatalf("%s: %v", kind(err), err)
	}
	line.CutAfter(-1)
	line.Stats()
	if _, err := m.Apply(t.Context(), want, remote.ApplyOptions{}, quiet); err != nil {
		t.Fatal(err)
	}
	if up := line.Stats().Up; up > 15<<20 || up < 8<<20 {
		t.Errorf("%d bytes were sent again", up)
	}
}

// TestAnInterruptedUploadGoesOn, whatever is in the file that it has left.
func TestAnInterruptedUploadGoesOn(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		s, p := realHost(t, sshtest.Options{})
		line := sshtest.NewLine(t, s.Address, sshtest.LineOptions{})
		ask := func() error {
			c := remote.NewClient(NewTransport(dialer(t, s)), p, remote.DefaultLimits())
			defer c.Close()
			_, err := c.AgentFor(at(s, line.Address)).Facts(t.Context())
			return err
		}
		left := func() []string {
			names, _ := filepath.Glob(s.Path(`C:\Windows\wmco\*`))
			return names
		}
		for range 2 {
			line.CutAfter(p.Size / 3)
			if err := ask(); kind(err) != "program" {
				t.Fatalf("%s: %v", kind(err), err)
			}
			if len(left()) != 1 {
				t.Fatalf("left behind: %v", left())
			}
		}
		if damaged {
			info, err := os.Stat(left()[0])
			if err != nil {
				t.Fatal(err)
			}
			write(t, left()[0], strings.Repeat("\x00", int(info.Size())))
		}
		line.CutAfter(-1)
		line.Stats()
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		if up := line.Stats().Up; !damaged && up > p.Size*6/10 {
			t.Errorf("%d of %d bytes were sent by the third upload", up, p.Size)
		}
		if names := left(); len(names) != 1 || names[0] != s.Path(p.Path) {
			t.Errorf("%v, want the agent alone", names)
		}
	}
}

func TestAFailedUploadSaysWhatToDo(t *testing.T) {
	for _, tt := range []struct {
		what    string
		options sshtest.Options
		todo    string
	}{
		{"disk full", sshtest.Options{Settings: simulated.Settings{DiskBytes: 100 << 10}}, "has room"},
		{"access denied", sshtest.Options{Settings: simulated.Settings{Denied: true}}, "Administrators"},
		{"no SFTP", sshtest.Options{NoSFTP: true}, "Subsystem sftp"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			s := programs.Start(t, tt.options)
			_, err := agent(t, s).Facts(t.Context())
			if kind(err) != "program" || !strings.Contains(remote.SuggestFix(err), tt.todo) {
				t.Errorf("%s: %v; %s", kind(err), err, remote.SuggestFix(err))
			}
			left, _ := filepath.Glob(s.Path(`C:\Windows\wmco\*`))
			if len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestServersThatCannotRenameOntoAFile(t *testing.T) {
	for _, rename := range []simulated.Rename{simulated.RenamePosix, simulated.RenameNone, simulated.RenameUnlinks} {
		for _, before := range []string{"", "half a program"} {
			s := programs.Start(t, sshtest.Options{Settings: simulated.Settings{Rename: rename}})
			if before != "" {
				write(t, s.Path(fake.Path), before)
			}
			if _, err := agent(t, s).Facts(t.Context()); err != nil {
				t.Errorf("%q, %q: %v", rename, before, err)
			}
			if !uploaded(t, s) {
				t.Errorf("%q, %q: the agent is not there", rename, before)
			}
		}
	}
}

func TestAnUploadDeletesOldProgramsAndLeftovers(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	ago := func(name string, hours int) {
		path := s.Path(`C:\Windows\wmco\` + name)
		write(t, path, name)
		when := time.Now().Add(-time.Duration(hours) * time.Hour)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	ago("wmco-node-000000000001.exe", 300)
	ago("wmco-node-000000000002.exe", 200)
	ago("wmco-node-000000000003.exe", 100)
	ago("wmco-node-000000000004.exe.cafe.wmco-new", 24)
	ago("wmco-node-000000000005.exe.cafe.wmco-new", 1)
	ago("notes.txt", 1000)
	if _, err := agent(t, s).Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(s.Path(`C:\Windows\wmco\*`))
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	want := []string{"notes.txt", "wmco-node-000000000003.exe", "wmco-node-000000000005.exe.cafe.wmco-new", filepath.Base(s.Path(fake.Path))}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("%v, want %v", left, want)
	}
}

func TestAProgramWithAnotherDigestIsAnError(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	p := fake
	p.Digest = "sha256:" + "0000000000000000000000000000000000000000000000000000000000000000"
	c := remote.NewClient(NewTransport(dialer(t, s)), p, remote.DefaultLimits())
	defer c.Close()
	if _, err := c.AgentFor(at(s, s.Address)).Facts(t.Context()); kind(err) != "program" {
		t.Errorf("%s: %v", kind(err), err)
	}
}

func TestContentsThatAreGoneAreSent(t *testing.T) {
	s, p := realHost(t, sshtest.Options{})
	c := remote.NewClient(NewTransport(dialer(t, s)), p, remote.DefaultLimits())
	defer c.Close()
	a := c.AgentFor(at(s, s.Address))
	mustApply(t, a, small(t, 3, 0))
	gone := small(t, 3, 1).Manifest.Layers[0].Layer.Files[1]
	for _, content := range small(t, 3, 1).Source.Contents() {
		if content.Digest == gone.Digest {
			discard(t, s, gone.Path, content)
		}
	}
	var results []protocol.Result
	r, err := a.Apply(t.Context(), small(t, 3, 1), remote.ApplyOptions{}, func(e protocol.Event) {
		if e.Event == protocol.EventResult {
			results = append(results, e.Result)
		}
	})
	if err != nil || r.Written != 2 {
		t.Errorf("%d written, %v", r.Written, err)
	}
	if diff := cmp.Diff([]protocol.Result{protocol.ResultApplied}, results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"observe", "", "version", "observe", "apply", "observe", "apply"}, words(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// One content is gone and another is corrupt: the host reports both, and gets both at once.
func TestCorruptContentsAreSentAgain(t *testing.T) {
	s, p := realHost(t, sshtest.Options{})
	c := remote.NewClient(NewTransport(dialer(t, s)), p, remote.DefaultLimits())
	defer c.Close()
	a := c.AgentFor(at(s, s.Address))
	mustApply(t, a, small(t, 4, 0))
	want := small(t, 4, 1)
	files := want.Manifest.Layers[0].Layer.Files
	for _, content := range want.Source.Contents() {
		if content.Digest == files[1].Digest {
			discard(t, s, files[1].Path, content)
		}
		if content.Digest == files[2].Digest {
			discard(t, s, files[2].Path, content)
			write(t, s.Path(plan.StateFolder+`\contents\`+content.Part(1).Name()), strings.Repeat("bad", 50))
		}
	}
	var results []protocol.Result
	r, err := a.Apply(t.Context(), want, remote.ApplyOptions{}, func(e protocol.Event) {
		if e.Event == protocol.EventResult {
			results = append(results, e.Result)
		}
	})
	if err != nil || r.Result != protocol.ResultApplied {
		t.Errorf("%q, %v", r.Result, err)
	}
	if diff := cmp.Diff([]protocol.Result{protocol.ResultApplied}, results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"observe", "", "version", "observe", "apply", "observe", "apply"}, words(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// discard removes a file and its content from the host.
func discard(t *testing.T, s *sshtest.Server, path string, c archive.Content) {
	t.Helper()
	for i := range c.Parts() {
		if err := os.Remove(s.Path(plan.StateFolder + `\contents\` + c.Part(i+1).Name())); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(s.Path(path)); err != nil {
		t.Fatal(err)
	}
}

// TestTheProgramStaysIfTheFileOfAnUploadIsGone: another upload has renamed the file, and put the program there.
func TestTheProgramStaysIfTheFileOfAnUploadIsGone(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	write(t, s.Path(fake.Path), "the program")
	transport := NewTransport(dialer(t, s))
	defer transport.Close()
	to := "/" + strings.ReplaceAll(fake.Path, `\`, "/")
	err := transport.Transfer(t.Context(), at(s, s.Address), func(files remote.Files) error {
		return files.Replace(to+".gone", to)
	})
	if _, gone := os.Stat(s.Path(fake.Path)); gone != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v; %v", gone, err)
	}
}
