package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/crypto/ssh"

	"wmco/applier"
	"wmco/applier/remote"
	"wmco/bundle/archive"
	"wmco/internal/test/sshtest"
	"wmco/internal/test/sshtest/simulated"
)

func TestCommandsThatFail(t *testing.T) {
	for _, tt := range []struct {
		fake, want string
		result     applier.Result
	}{
		{"dies", `command: status -1, signal "KILL"`, ""},
		{"refuses", "none", applier.ResultRefused},
		{"floods", "none", applier.ResultApplied},
	} {
		s := programs.Start(t, sshtest.Options{Settings: simulated.Settings{Environment: []string{"FAKE=" + tt.fake}}})
		r, err := agent(t, s).Apply(t.Context(), large(t, 10<<20), remote.ApplyOptions{}, quiet)
		if kind(err) != tt.want || r.Result != tt.result {
			t.Errorf("%s: %s and %q, want %s and %q: %v", tt.fake, kind(err), r.Result, tt.want, tt.result, err)
		}
	}
}

func TestEveryLimitEndsACommand(t *testing.T) {
	for _, tt := range []struct {
		what   string
		limits func(*Limits)
		freeze bool
	}{
		{"the context's deadline", func(l *Limits) { l.Silence = 0 }, false},
		{"silence", func(l *Limits) { l.Silence = 3 * time.Second }, false}, // more than the program takes to begin on a busy computer
		{"no sign of life", func(l *Limits) { l.KeepAlive, l.Missed = 200*time.Millisecond, 3 }, true},
	} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			s, line := hanging(t)
			d := dialer(t, s)
			tt.limits(&d.Limits)
			a := client(t, d).AgentFor(at(s, line.Address))
			if _, err := a.Facts(t.Context()); err != nil { // which reads the agent back
				t.Fatal(err)
			}
			if tt.freeze {
				time.AfterFunc(500*time.Millisecond, line.Freeze)
			}
			ctx := t.Context()
			if d.Limits.Silence == 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 600*time.Millisecond)
				defer cancel()
			}
			begin := time.Now()
			_, err := a.Observe(ctx, small(t, 3, 1))
			if kind(err) != "interrupted" || time.Since(begin) > 8*time.Second {
				t.Errorf("%s after %s: %v", kind(err), time.Since(begin), err)
			}
		})
	}
}

// hanging returns a host with the agent, whose observe does not end.
func hanging(t *testing.T) (*sshtest.Server, *sshtest.Line) {
	t.Helper()
	s := programs.Start(t, sshtest.Options{})
	if _, err := agent(t, s).Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Settings(simulated.Settings{Environment: []string{"FAKE=hangs"}})
	return s, sshtest.NewLine(t, s.Address, sshtest.LineOptions{})
}

func TestACanceledContextEndsEverythingAtOnce(t *testing.T) {
	s, line := hanging(t)
	stopped := errors.New("stopped")
	for _, tt := range []struct{ what, address string }{
		{"while dialing", sshtest.BlackHole(t)},
		{"in the handshake", sshtest.NewLine(t, s.Address, sshtest.LineOptions{Banner: time.Hour}).Address},
		{"while a command runs", line.Address},
		{"while another host is worked on", ""},
	} {
		t.Run(tt.what, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			var when time.Time
			time.AfterFunc(700*time.Millisecond, func() { when = time.Now(); cancel(stopped) })
			var err error
			c := client(t, dialer(t, s))
			if tt.address == "" {
				two := []remote.Target{at(s, s.Address), at(s, s.Address)}
				err = errors.Join(c.ForEachHost(ctx, two, 1, func(ctx context.Context, a *remote.Agent) error {
					_, err := a.Observe(ctx, small(t, 3, 1))
					return err
				})...)
			} else {
				_, err = c.AgentFor(at(s, tt.address)).Observe(ctx, small(t, 3, 1))
			}
			if !errors.Is(err, stopped) || time.Since(when) > time.Second {
				t.Errorf("after %s: %v", time.Since(when), err)
			}
		})
	}
	for end := time.Now().Add(5 * time.Second); line.Open() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections are open", line.Open())
		}
	}
}

func TestADeadKeptConnectionIsReplaced(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	line := sshtest.NewLine(t, s.Address, sshtest.LineOptions{})
	m := client(t, dialer(t, s)).AgentFor(at(s, line.Address))
	for i, breakIt := range []func(){func() {}, s.Restart, line.Reset, func() { s.Restart(); time.Sleep(100 * time.Millisecond) }} {
		breakIt()
		if _, err := m.Facts(t.Context()); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestAServerMayAllowOneChannelAtATime(t *testing.T) {
	s := programs.Start(t, sshtest.Options{Config: []string{"MaxSessions 1"}})
	m := agent(t, s)
	for i, want := range []applier.Result{applier.ResultApplied, applier.ResultSame, applier.ResultApplied} {
		r, err := m.Apply(t.Context(), small(t, 3, i/2), remote.ApplyOptions{}, quiet)
		if err != nil || r.Result != want {
			t.Errorf("%d: %q, %v", i, r.Result, err)
		}
	}
}

func TestAThousandRunsLeaveOneConnection(t *testing.T) {
	for _, tt := range []struct {
		what  string
		runs  int
		start func(t *testing.T) (Dialer, remote.Target, func() int)
	}{
		{"against OpenSSH", 100, func(t *testing.T) (Dialer, remote.Target, func() int) {
			s := programs.Start(t, sshtest.Options{})
			return dialer(t, s), at(s, s.Address), s.Sessions
		}},
		{"against a server of the test", 1000, func(t *testing.T) (Dialer, remote.Target, func() int) {
			d, to := stranger(t, execServer(t, sendFacts))
			return d, to, func() int { return 0 }
		}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			d, to, processes := tt.start(t)
			line := sshtest.NewLine(t, to.Address, sshtest.LineOptions{})
			to.Address = line.Address
			m := client(t, d).AgentFor(to)
			if _, err := m.Facts(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(200 * time.Millisecond) // the channel for the next command is opened meanwhile
			goroutines, sessions := runtime.NumGoroutine(), processes()
			for range tt.runs {
				if _, err := m.Facts(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if n := line.Stats().Connections; n != 1 {
				t.Errorf("%d connections, want 1", n)
			}
			settle(t, func() string {
				if n, p := runtime.NumGoroutine(), processes(); n > goroutines || p > sessions {
					return fmt.Sprintf("%d goroutines, %d before; %d processes on the host, %d before", n, goroutines, p, sessions)
				}
				return ""
			})
		})
	}
}

// Some of the runs are cut.
func TestNothingLeaksIfNoConnectionIsKept(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	line := sshtest.NewLine(t, s.Address, sshtest.LineOptions{})
	d := dialer(t, s)
	d.Limits.Kept = 0
	m := client(t, d).AgentFor(at(s, line.Address))
	if _, err := m.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	goroutines := runtime.NumGoroutine()
	for i := range 20 {
		if i%2 == 1 {
			line.CutAfter(rand.Int64N(9000))
		}
		_, err := m.Facts(t.Context())
		line.CutAfter(-1)
		if err != nil && !remote.IsRetryable(err) {
			t.Errorf("%d: %v", i, err)
		}
	}
	settle(t, func() string {
		if n := runtime.NumGoroutine(); n > goroutines || line.Open() > 0 {
			return fmt.Sprintf("%d goroutines, %d before; %d connections", n, goroutines, line.Open())
		}
		return ""
	})
}

func TestASlowHostDelaysNoOther(t *testing.T) {
	s, line := hanging(t)
	d := dialer(t, s)
	d.Limits.Handshake = 4 * time.Second
	targets := []remote.Target{at(s, sshtest.BlackHole(t)), at(s, sshtest.BlackHole(t)), at(s, sshtest.NewLine(t, s.Address, sshtest.LineOptions{Banner: time.Hour}).Address), at(s, line.Address)}
	signers := []ssh.Signer{s.Key}
	for range 4 {
		good := programs.Start(t, sshtest.Options{})
		signers = append(signers, good.Key)
		targets = append(targets, at(good, good.Address))
	}
	d.Signers = keys(signers...)
	c := client(t, d)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	begin := time.Now()
	done := make(chan time.Duration, len(targets))
	go func() {
		for range 4 {
			<-done
		}
		t.Logf("the others took %s", time.Since(begin))
		cancel()
	}()
	errs := c.ForEachHost(ctx, targets, 2, func(ctx context.Context, m *remote.Agent) error {
		_, err := m.Apply(ctx, small(t, 3, 1), remote.ApplyOptions{}, quiet)
		if err == nil {
			done <- time.Since(begin)
		}
		return err
	})
	if time.Since(begin) > 29*time.Second {
		t.Error("the others waited")
	}
	for i, err := range errs {
		if (err == nil) != (i >= 4) {
			t.Errorf("host %d: %v", i, err)
		}
	}
}

func TestAHangingCommandLeavesTheNextOneAlone(t *testing.T) {
	s := programs.Start(t, sshtest.Options{Settings: simulated.Settings{Environment: []string{"FAKE=drowsy"}}})
	d := dialer(t, s)
	d.Limits.Silence = time.Second
	a := client(t, d).AgentFor(at(s, s.Address))
	mustApply(t, a, small(t, 3, 1))
	_, err := a.Verify(t.Context(), small(t, 3, 2))
	if k := kind(err); k != "interrupted" {
		t.Errorf("%s: %v", k, err)
	}
	mustApply(t, a, small(t, 3, 3))
}

// The host may have done what it was sent, so the error must not say that it was unreachable.
func TestACommandWhoseConnectionDiesIsInterruptedAndGoesOn(t *testing.T) {
	s, p := realHost(t, sshtest.Options{})
	line := sshtest.NewLine(t, s.Address, sshtest.LineOptions{})
	d := dialer(t, s)
	d.Limits.KeepAlive, d.Limits.Missed, d.Limits.Handshake = 300*time.Millisecond, 3, time.Second
	c := remote.NewClient(NewTransport(d), p, remote.DefaultLimits())
	defer c.Close()
	a := c.AgentFor(at(s, line.Address))
	mustApply(t, a, small(t, 3, 1))
	lock, err := os.OpenFile(s.Root+"/.machine/lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	// Another run holds the lock. Meanwhile the connection dies.
	go func() {
		for end := time.Now().Add(10 * time.Second); !slices.Contains(words(s), "apply --wait 10s") && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(time.Second) // the archive arrives
		line.Freeze()
		_ = lock.Close()
	}()
	want := small(t, 3, 9)
	_, err = a.Apply(t.Context(), want, remote.ApplyOptions{Wait: 10 * time.Second}, quiet)
	if kind(err) != "interrupted" {
		t.Errorf("%s: %v", kind(err), err)
	}
	line.Thaw()
	settle(t, func() string { return strings.Join(differs(t, s, want), ", ") })
	if r, err := a.Apply(t.Context(), want, remote.ApplyOptions{Wait: 10 * time.Second}, quiet); err != nil || r.Result != applier.ResultSame {
		t.Errorf("it did not go on: %q, %v", r.Result, err)
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

// The error says why the source broke, though the host reports an archive that was cut.
func TestASourceThatBreaks(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	a := agent(t, s)
	mustApply(t, a, small(t, 3, 1))
	for version, cause := range []error{os.ErrClosed, io.ErrUnexpectedEOF} {
		r := large(t, 9<<20+version)
		r.Source = brokenSource{r.Source, fmt.Errorf("reading the payload: %w", cause)}
		if _, err := a.Apply(t.Context(), r, remote.ApplyOptions{}, quiet); !errors.Is(err, cause) {
			t.Errorf("%v: %v", cause, err)
		}
		mustApply(t, a, small(t, 3, 5+version))
	}
}

// A server that closes channels instead of running commands is not asked forever.
func TestAServerThatClosesChannels(t *testing.T) {
	var execs atomic.Int64
	address := sessionServer(t, func(channel ssh.Channel, requests <-chan *ssh.Request) {
		for r := range requests {
			if r.Type == "exec" && execs.Add(1) > 1 {
				_ = channel.Close()
				continue
			}
			_ = r.Reply(true, nil)
			if r.Type == "exec" {
				sendFacts(channel)
			} else {
				serveAgent(channel)
			}
			_ = channel.Close()
		}
	})
	d, to := stranger(t, address)
	a := client(t, d).AgentFor(to)
	if _, err := a.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Facts(t.Context()); kind(err) != "interrupted" || execs.Load() > 5 {
		t.Errorf("%d times: %v", execs.Load(), err)
	}
}

// TestTheKeyOfALoginIsSaid where it is known: not where several were offered, and not where none was accepted.
func TestTheKeyOfALoginIsSaid(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	stranger := s.NewKey()
	for name, c := range map[string]struct {
		offered []ssh.Signer
		want    bool
	}{"one key": {[]ssh.Signer{s.Key}, true}, "a key that is refused": {[]ssh.Signer{stranger}, false}, "two keys": {[]ssh.Signer{stranger, s.Key}, false}} {
		d := dialer(t, s)
		d.Signers = keys(c.offered...)
		var said []string
		d.OnLogin = func(to remote.Target, key ssh.PublicKey) {
			said = append(said, to.ID+" "+ssh.FingerprintSHA256(key))
		}
		to := at(s, s.Address)
		to.ID = "machine_a"
		_, _ = client(t, d).AgentFor(to).Facts(t.Context()) // refused for the stranger
		want := []string{"machine_a " + ssh.FingerprintSHA256(s.Key.PublicKey())}
		if c.want != slices.Equal(said, want) || !c.want && len(said) > 0 {
			t.Errorf("%s: %v", name, said)
		}
	}
}
