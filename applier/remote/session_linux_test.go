package remote

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"wmco/applier"
	"wmco/bundle/archive"
	"wmco/internal/sshtest"
	"wmco/internal/sshtest/simulated"
)

// inSession brings a machine to versions, from 100 on, until one program runs all commands. That may take a few: a server
// that allows one channel can refuse the next one for some time after a close, and a new connection counts from its start.
func inSession(t *testing.T, m *Machine, s *sshtest.Server) {
	t.Helper()
	for version := 100; version < 140; version++ {
		mustApply(t, m, small(t, 3, version))
		if starts := s.Starts(); strings.HasSuffix(starts[len(starts)-1], " serve") {
			return
		}
	}
	t.Fatalf("no session: %v", s.Starts())
}

func mustApply(t *testing.T, m *Machine, want Request) {
	t.Helper()
	if r, err := m.Apply(t.Context(), want, ApplyOptions{}, quiet); err != nil || r.Result != applier.ResultApplied {
		t.Fatalf("%q, %v", r.Result, err)
	}
}

// words are the commands that were started from there on.
func words(s *sshtest.Server, from int) []string {
	var list []string
	for _, line := range s.Starts()[from:] {
		_, said, _ := strings.Cut(line, " ")
		list = append(list, said)
	}
	return list
}

// A server that allows one channel has no place for a session and another command.
func TestASessionGivesItsPlaceToOtherCommands(t *testing.T) {
	s := programs.Start(t, sshtest.Options{Config: []string{"MaxSessions 1"}})
	m := machine(t, s)
	inSession(t, m, s)
	if _, err := m.Facts(t.Context()); err != nil {
		t.Error(err)
	}
	if placed, err := m.place(t.Context()); err != nil || placed {
		t.Errorf("placed %t, %v", placed, err)
	}
	mustApply(t, m, small(t, 3, 3))
}

func TestASessionThatDiedIsReplaced(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	m := machine(t, s)
	inSession(t, m, s)
	before := len(s.Starts())
	killServing(t, s)
	mustApply(t, m, small(t, 3, 3))
	if diff := cmp.Diff([]string{"apply"}, words(s, before)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// killServing kills the program that serves.
func killServing(t *testing.T, s *sshtest.Server) {
	t.Helper()
	out, err := exec.Command("pgrep", "-f", "wmco-node-.* serve$").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		var pid int
		if _, err := fmt.Sscan(line, &pid); err != nil {
			t.Fatal(err)
		}
		environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if strings.Contains(string(environment), "="+s.Root+"\x00") {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A program that begins to answer and dies is told as what it is.
func TestAProgramThatDiesInASession(t *testing.T) {
	s := programs.Start(t, sshtest.Options{Settings: simulated.Settings{Environment: []string{"FAKE=mortal"}}})
	m := machine(t, s)
	mustApply(t, m, small(t, 3, 1))
	for range 2 {
		var command *CommandError
		_, err := m.Apply(t.Context(), small(t, 3, 2), ApplyOptions{}, quiet)
		if !errors.As(err, &command) || command.Signal != "KILL" {
			t.Errorf("%v", err)
		}
	}
}

// A program that does not know sessions, such as an older one, or says nothing costs one attempt.
func TestProgramsWithoutSessions(t *testing.T) {
	for _, fault := range []string{"alone", "mute"} {
		s := programs.Start(t, sshtest.Options{Settings: simulated.Settings{Environment: []string{"FAKE=" + fault}}})
		d := dialer(t, s)
		d.Limits.Handshake = time.Second
		m := client(t, d).Machine(at(s, s.Address))
		for version := range 4 {
			mustApply(t, m, small(t, 3, version))
		}
		want := []string{"observe", "", "version", "observe", "apply", "serve", "apply", "apply", "apply"}
		if diff := cmp.Diff(want, words(s, 0)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", fault, diff)
		}
	}
}

// A command that hangs is given up in a session as elsewhere.
func TestACommandThatHangsInASession(t *testing.T) {
	s := programs.Start(t, sshtest.Options{Settings: simulated.Settings{Environment: []string{"FAKE=drowsy"}}})
	d := dialer(t, s)
	d.Limits.Silence = time.Second
	m := client(t, d).Machine(at(s, s.Address))
	inSession(t, m, s)
	_, err := m.Verify(t.Context(), small(t, 3, 2))
	if k := kind(err); k != "interrupted" {
		t.Errorf("%s: %v", k, err)
	}
	mustApply(t, m, small(t, 3, 3))
}

// What a session was sent may have been done: nobody says that the machine was not reached.
func TestALostSessionMayHaveRunTheCommand(t *testing.T) {
	s, p := realMachine(t, sshtest.Options{})
	line := sshtest.NewLine(t, s.Address, sshtest.LineOptions{})
	d := dialer(t, s)
	d.Limits.KeepAlive, d.Limits.Missed, d.Limits.Handshake = 300*time.Millisecond, 3, time.Second
	c := NewClient(d, p)
	defer c.Close()
	m := c.Machine(at(s, line.Address))
	inSession(t, m, s)
	lock, err := os.OpenFile(s.Root+"/.machine/lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	// Somebody works on the machine, and meanwhile the line dies.
	time.AfterFunc(700*time.Millisecond, line.Freeze)
	time.AfterFunc(1200*time.Millisecond, func() { _ = lock.Close() })
	want := small(t, 3, 9)
	_, err = m.Apply(t.Context(), want, ApplyOptions{Wait: 10 * time.Second}, quiet)
	var interrupted *InterruptedError
	if !errors.As(err, &interrupted) {
		t.Errorf("%v", err)
	}
	line.Thaw()
	if r, err := m.Apply(t.Context(), want, ApplyOptions{Wait: 10 * time.Second}, quiet); err != nil || r.Result != applier.ResultSame {
		t.Errorf("it did not run: %q, %v", r.Result, err)
	}
}

// brokenSource has contents that cannot be read to their end.
type brokenSource struct {
	archive.Source
	err error
}

// Open implements archive.Source.
func (b brokenSource) Open(string) (io.ReadCloser, error) {
	return io.NopCloser(iotest.ErrReader(b.err)), nil
}

// Why a source broke is told, though the machine says that what came was cut.
func TestASourceThatBreaksInASession(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	m := machine(t, s)
	inSession(t, m, s)
	for version, cause := range []error{os.ErrClosed, io.ErrUnexpectedEOF} {
		r := small(t, 3, 3+version)
		r.Source = brokenSource{r.Source, fmt.Errorf("reading the payload: %w", cause)}
		if _, err := m.Apply(t.Context(), r, ApplyOptions{}, quiet); !errors.Is(err, cause) {
			t.Errorf("%v: %v", cause, err)
		}
		mustApply(t, m, small(t, 3, 5+version))
	}
}

// A server that ends channels instead of running commands is not asked for ever.
func TestAServerThatEndsChannels(t *testing.T) {
	var execs atomic.Int64
	address := sessionServer(t, func(channel ssh.Channel, requests <-chan *ssh.Request) {
		for r := range requests {
			if r.Type == "exec" && execs.Add(1) > 1 {
				_ = channel.Close()
				continue
			}
			_ = r.Reply(true, nil)
			tellFacts(channel)
			_ = channel.Close()
		}
	})
	d, to := stranger(t, address)
	m := client(t, d).Machine(to)
	if _, err := m.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Facts(t.Context()); kind(err) != "interrupted" || execs.Load() > 5 {
		t.Errorf("%d times: %v", execs.Load(), err)
	}
}

// What a machine is believed to hold may have gone: then it says so and gets it.
func TestAWrongGuessCostsACommand(t *testing.T) {
	s, p := realMachine(t, sshtest.Options{})
	c := NewClient(dialer(t, s), p)
	defer c.Close()
	m := c.Machine(at(s, s.Address))
	mustApply(t, m, small(t, 3, 0))
	gone := small(t, 3, 1).Manifest.Layers[0].Layer.Files[1]
	for _, content := range small(t, 3, 1).Source.Contents() {
		if content.Digest == gone.Digest {
			discard(t, s, gone.Path, content)
		}
	}
	var results []applier.Result
	r, err := m.Apply(t.Context(), small(t, 3, 1), ApplyOptions{}, func(e applier.Event) {
		if e.Event == applier.EventResult {
			results = append(results, e.Result)
		}
	})
	if err != nil || r.Written != 2 {
		t.Errorf("%d written, %v", r.Written, err)
	}
	if diff := cmp.Diff([]applier.Result{applier.ResultApplied}, results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"observe", "", "version", "observe", "apply", "serve"}, words(s, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// One content is gone, which the guess does not know, and another has rotted, which the machine does not know.
func TestAWrongGuessAndARottenContent(t *testing.T) {
	s, p := realMachine(t, sshtest.Options{})
	c := NewClient(dialer(t, s), p)
	defer c.Close()
	m := c.Machine(at(s, s.Address))
	mustApply(t, m, small(t, 4, 0))
	want := small(t, 4, 1)
	files := want.Manifest.Layers[0].Layer.Files
	for _, content := range want.Source.Contents() {
		if content.Digest == files[1].Digest {
			discard(t, s, files[1].Path, content)
		}
		if content.Digest == files[2].Digest {
			discard(t, s, files[2].Path, content)
			write(t, s.Path(applier.StateFolder+`\contents\`+content.Part(1).Name()), strings.Repeat("rot", 50))
		}
	}
	mustApply(t, m, want)
}

// discard removes a file and its content from the machine.
func discard(t *testing.T, s *sshtest.Server, path string, c archive.Content) {
	t.Helper()
	for i := range c.Parts() {
		if err := os.Remove(s.Path(applier.StateFolder + `\contents\` + c.Part(i+1).Name())); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(s.Path(path)); err != nil {
		t.Fatal(err)
	}
}
