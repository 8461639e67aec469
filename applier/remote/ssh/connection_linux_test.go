package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/crypto/ssh"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle/archive"
	"wmco/internal/test/seed"
	"wmco/internal/test/sshtest"
	"wmco/internal/test/sshtest/simulated"
)

func TestCommandsThatFail(t *testing.T) {
	for _, tt := range []struct {
		fake, want string
		result     protocol.Result
	}{
		{"dies", `command: status -1, signal "KILL"`, ""},
		{"refuses", "none", protocol.ResultRefused},
		{"floods", "none", protocol.ResultApplied},
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
		// begun is called when the command hangs.
		begun func(*deadlines, *sshtest.Line, context.CancelFunc)
	}{
		{"the end of the context", func(*Limits) {}, func(_ *deadlines, _ *sshtest.Line, cancel context.CancelFunc) { cancel() }},
		{"silence", func(l *Limits) { l.Silence = time.Second }, func(*deadlines, *sshtest.Line, context.CancelFunc) {}},
		{"no sign of life", func(l *Limits) { l.KeepAlive, l.Missed = 15*time.Second, 1 }, func(d *deadlines, line *sshtest.Line, _ context.CancelFunc) {
			line.Freeze()
			d.begin()
		}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			s, line := hanging(t)
			d := dialer(t, s)
			first := client(t, d)
			if _, err := first.AgentFor(at(s, line.Address)).Facts(t.Context()); err != nil { // which reads the agent back
				t.Fatal(err)
			}
			tt.limits(&d.Limits)
			held := &deadlines{}
			d.Dial = held.dial
			limited := NewTransport(d)
			defer limited.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			hangs := started(s, "observe")
			go func() {
				await(t, "the command", hangs)
				tt.begun(held, line, cancel)
			}()
			begin := time.Now()
			_, err := first.WithTransport(limited).AgentFor(at(s, line.Address)).Observe(ctx, small(t, 3, 1))
			if kind(err) != "interrupted" || time.Since(begin) > 2*time.Minute {
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
	silent := sshtest.NewLine(t, s.Address, sshtest.LineOptions{Banner: time.Hour})
	stopped := errors.New("stopped")
	for _, tt := range []struct {
		what, address string
		// begun reports whether the call is in the phase.
		begun func(dialed *atomic.Bool, command func() bool) bool
	}{
		{"before it begins", line.Address, nil},
		{"while dialing", sshtest.BlackHole(t), func(dialed *atomic.Bool, _ func() bool) bool { return dialed.Load() }},
		{"in the handshake", silent.Address, func(*atomic.Bool, func() bool) bool { return silent.Up() > 0 }},
		{"while a command runs", line.Address, func(_ *atomic.Bool, command func() bool) bool { return command() }},
		{"while another host is worked on", "", func(_ *atomic.Bool, command func() bool) bool { return command() }},
	} {
		t.Run(tt.what, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			d := dialer(t, s)
			var dialed atomic.Bool
			d.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				dialed.Store(true)
				return (&net.Dialer{}).DialContext(ctx, network, address)
			}
			command, when := started(s, "observe"), make(chan time.Time, 1)
			if tt.begun == nil {
				when <- time.Now()
				cancel(stopped)
			} else {
				go func() {
					await(t, "the phase", func() bool { return tt.begun(&dialed, command) })
					when <- time.Now()
					cancel(stopped)
				}()
			}
			var err error
			c := client(t, d)
			if tt.address == "" {
				two := []remote.Target{at(s, s.Address), at(s, s.Address)}
				err = errors.Join(c.ForEachHost(ctx, two, 1, func(ctx context.Context, a *remote.Agent) error {
					_, err := a.Observe(ctx, small(t, 3, 1))
					return err
				})...)
			} else {
				_, err = c.AgentFor(at(s, tt.address)).Observe(ctx, small(t, 3, 1))
			}
			if took := time.Since(<-when); !errors.Is(err, stopped) || took > time.Minute {
				t.Errorf("after %s: %v", took, err)
			}
		})
	}
	await(t, "the end of the connections", func() bool { return line.Open() == 0 })
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
	for i, want := range []protocol.Result{protocol.ResultApplied, protocol.ResultSame, protocol.ResultApplied} {
		r, err := m.Apply(t.Context(), small(t, 3, i/2), remote.ApplyOptions{}, quiet)
		if err != nil || r.Result != want {
			t.Errorf("%d: %q, %v", i, r.Result, err)
		}
	}
}

// TestAThousandRunsLeaveOneConnection has a thousand with allCuts.
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
			// The channel for the next command is opened at some time. What leaks does so in each run.
			goroutines, sessions := runtime.NumGoroutine()+10, processes()+2
			if !allCuts() {
				tt.runs /= 3
			}
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
					return fmt.Sprintf("%d goroutines, want at most %d; %d processes on the host, want at most %d", n, goroutines, p, sessions)
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
	goroutines, random := runtime.NumGoroutine(), seed.New(t)
	for i := range 20 {
		if i%2 == 1 {
			line.CutAfter(random.Int64N(9000))
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
	targets := []remote.Target{at(s, sshtest.BlackHole(t)), at(s, sshtest.BlackHole(t)), at(s, sshtest.NewLine(t, s.Address, sshtest.LineOptions{Banner: time.Hour}).Address), at(s, line.Address)}
	signers := []ssh.Signer{s.Key}
	for range 4 {
		good := programs.Start(t, sshtest.Options{})
		signers = append(signers, good.Key)
		targets = append(targets, at(good, good.Address))
	}
	d.Signers = keys(signers...)
	limits := remote.DefaultLimits()
	limits.Idle, limits.Turn = patience, patience // so that no host is ended for another one
	c := remote.NewClient(NewTransport(d), fake, limits)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
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
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
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
	a := agent(t, s)
	mustApply(t, a, small(t, 3, 1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hangs := started(s, "verify")
	go func() {
		await(t, "the command", hangs)
		cancel()
	}()
	_, err := a.Verify(ctx, small(t, 3, 2))
	if k := kind(err); k != "interrupted" {
		t.Errorf("%s: %v", k, err)
	}
	mustApply(t, a, small(t, 3, 3))
}

// The host may have done what it was sent, so the error must not say that it was unreachable.
func TestACommandWhoseConnectionDiesIsInterruptedAndGoesOn(t *testing.T) {
	s, p := realHost(t, sshtest.Options{})
	line := sshtest.NewLine(t, s.Address, sshtest.LineOptions{})
	d, held := dialer(t, s), &deadlines{}
	d.Limits.KeepAlive, d.Limits.Missed, d.Dial = time.Minute, 1, held.dial
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
	// Another run holds the lock. Then the connection dies.
	begun := started(s, "apply --wait")
	go func() {
		await(t, "the command", begun)
		for up, still := int64(0), 0; still < 50; time.Sleep(20 * time.Millisecond) { // the archive arrives
			if still++; line.Up() != up {
				up, still = line.Up(), 0
			}
		}
		line.Freeze()
		held.begin()
		_ = lock.Close()
	}()
	want := small(t, 3, 9)
	_, err = a.Apply(t.Context(), want, remote.ApplyOptions{Wait: patience}, quiet)
	if kind(err) != "interrupted" {
		t.Errorf("%s: %v", kind(err), err)
	}
	line.Thaw()
	settle(t, func() string { return strings.Join(differs(t, s, want), ", ") })
	next := remote.NewClient(NewTransport(dialer(t, s)), p, remote.DefaultLimits())
	defer next.Close()
	if r, err := next.AgentFor(at(s, line.Address)).Apply(t.Context(), want, remote.ApplyOptions{Wait: patience}, quiet); err != nil || r.Result != protocol.ResultSame {
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

// The error has why the source broke, though the host reports an archive that was cut.
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
