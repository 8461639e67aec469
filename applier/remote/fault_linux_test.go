package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"wmco/applier"
	"wmco/internal/sshtest"
	"wmco/internal/sshtest/simulated"
)

func TestAConnectionThatIsCutAtAnyByteIsTakenUpByTheNextRun(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	want := large(t, 10<<20)
	whole := bytesOfFirstRun(t, s, want)
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	cuts := []int64{1, 100, 1000, 3000, 5000, 6000, 7000, whole / 2, whole - 20000, whole - 6000, whole - 3000, whole - 500, whole - 50}
	for range 7 {
		cuts = append(cuts, random.Int64N(whole))
	}
	kinds := map[string]int{}
	for _, cut := range cuts {
		s := programs.Start(t, sshtest.Options{})
		line := sshtest.NewLine(t, s.Address, sshtest.LineOptions{})
		d := dialer(t, s)
		line.CutAfter(cut)
		_, err := client(t, d).Machine(at(s, line.Address)).Apply(t.Context(), want, ApplyOptions{}, quiet)
		kinds[kind(err)]++
		if err == nil {
			t.Logf("cut at %d: it came through", cut)
		} else if !Retryable(err) && kind(err) != "program" {
			t.Errorf("cut at %d: %s: %v", cut, kind(err), err)
		}
		line.CutAfter(-1)
		r, err := client(t, d).Machine(at(s, line.Address)).Apply(t.Context(), want, ApplyOptions{}, quiet)
		if err != nil || r.Result != applier.ResultApplied && r.Result != applier.ResultSame {
			t.Fatalf("after the cut at %d: %q, %v", cut, r.Result, err)
		}
		if !uploaded(t, s) {
			t.Errorf("after the cut at %d the program is not whole", cut)
		}
	}
	t.Logf("%d bytes, %d cuts: %v", whole, len(cuts), kinds)
	if kinds["interrupted"] == 0 || kinds["program"] == 0 {
		t.Error("not every phase was cut")
	}
}

func bytesOfFirstRun(t *testing.T, s *sshtest.Server, want Request) int64 {
	t.Helper()
	line := sshtest.NewLine(t, s.Address, sshtest.LineOptions{})
	if _, err := client(t, dialer(t, s)).Machine(at(s, line.Address)).Apply(t.Context(), want, ApplyOptions{}, quiet); err != nil {
		t.Fatal(err)
	}
	stats := line.Stats()
	return stats.Up + stats.Down
}

// What came before the cut does not come again.
func TestPartsThatArrivedAreNotSentAgain(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	line := sshtest.NewLine(t, s.Address, sshtest.LineOptions{})
	m := client(t, dialer(t, s)).Machine(at(s, line.Address))
	if _, err := m.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := large(t, 22<<20)
	line.CutAfter(15 << 20)
	if _, err := m.Apply(t.Context(), want, ApplyOptions{}, quiet); kind(err) != "interrupted" {
		t.Fatalf("%s: %v", kind(err), err)
	}
	line.CutAfter(-1)
	line.Stats()
	if _, err := m.Apply(t.Context(), want, ApplyOptions{}, quiet); err != nil {
		t.Fatal(err)
	}
	if up := line.Stats().Up; up > 15<<20 || up < 8<<20 {
		t.Errorf("%d bytes were sent again", up)
	}
}

func TestUploadsThatTheMachineRefusesSayWhatToDo(t *testing.T) {
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
			_, err := machine(t, s).Facts(t.Context())
			if kind(err) != "program" || !strings.Contains(Fix(err), tt.todo) {
				t.Errorf("%s: %v; %s", kind(err), err, Fix(err))
			}
			left, _ := filepath.Glob(s.Path(`C:\k\agent\*`))
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
			if _, err := machine(t, s).Facts(t.Context()); err != nil {
				t.Errorf("%q, %q: %v", rename, before, err)
			}
			if !uploaded(t, s) {
				t.Errorf("%q, %q: the program is not there", rename, before)
			}
		}
	}
}

func TestAnUploadTidiesUp(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	ago := func(name string, hours int) {
		path := s.Path(`C:\k\agent\` + name)
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
	if _, err := machine(t, s).Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(s.Path(`C:\k\agent\*`))
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	want := []string{"notes.txt", "wmco-node-000000000003.exe", "wmco-node-000000000005.exe.cafe.wmco-new", filepath.Base(s.Path(fake.Path))}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("%v, want %v", left, want)
	}
}

func TestAProgramThatIsNotOursIsNoticed(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	p := fake
	p.Digest = "sha256:" + "0000000000000000000000000000000000000000000000000000000000000000"
	c := NewClient(dialer(t, s), p)
	defer c.Close()
	if _, err := c.Machine(at(s, s.Address)).Facts(t.Context()); kind(err) != "program" {
		t.Errorf("%s: %v", kind(err), err)
	}
}

func TestACommandThatGoesWrong(t *testing.T) {
	for _, tt := range []struct {
		fake, want string
		result     applier.Result
	}{
		{"dies", `command: status -1, signal "KILL"`, ""},
		{"refuses", "none", applier.ResultRefused},
		{"floods", "none", applier.ResultApplied},
	} {
		s := programs.Start(t, sshtest.Options{Settings: simulated.Settings{Environment: []string{"FAKE=" + tt.fake}}})
		r, err := machine(t, s).Apply(t.Context(), large(t, 10<<20), ApplyOptions{}, quiet)
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
		{"the command's", func(l *Limits) { l.Command = 300 * time.Millisecond }, false},
		{"silence", func(l *Limits) { l.Silence = 300 * time.Millisecond }, false},
		{"no sign of life", func(l *Limits) { l.KeepAlive, l.Missed = 200*time.Millisecond, 3 }, true},
	} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			s, line := hanging(t)
			d := dialer(t, s)
			tt.limits(&d.Limits)
			if tt.freeze {
				time.AfterFunc(500*time.Millisecond, line.Freeze)
			}
			begin := time.Now()
			_, err := client(t, d).Machine(at(s, line.Address)).Observe(t.Context(), small(t, 3, 1))
			if kind(err) != "interrupted" || time.Since(begin) > 8*time.Second {
				t.Errorf("%s after %s: %v", kind(err), time.Since(begin), err)
			}
		})
	}
}

// hanging is a machine with the program, whose observe does not end.
func hanging(t *testing.T) (*sshtest.Server, *sshtest.Line) {
	t.Helper()
	s := programs.Start(t, sshtest.Options{})
	if _, err := machine(t, s).Facts(t.Context()); err != nil {
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
		{"waiting for its turn", ""},
	} {
		t.Run(tt.what, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			var when time.Time
			time.AfterFunc(700*time.Millisecond, func() { when = time.Now(); cancel(stopped) })
			var err error
			c := client(t, dialer(t, s))
			if tt.address == "" {
				places := make(chan struct{})
				err = inTurn(ctx, places, func() error { return nil })
			} else {
				_, err = c.Machine(at(s, tt.address)).Observe(ctx, small(t, 3, 1))
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
	m := client(t, dialer(t, s)).Machine(at(s, line.Address))
	for i, breakIt := range []func(){func() {}, s.Restart, line.Reset, func() { s.Restart(); time.Sleep(100 * time.Millisecond) }} {
		breakIt()
		if _, err := m.Facts(t.Context()); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestFewSessionsAreEnough(t *testing.T) {
	s := programs.Start(t, sshtest.Options{Config: []string{"MaxSessions 1"}})
	m := machine(t, s)
	for i, want := range []applier.Result{applier.ResultApplied, applier.ResultSame, applier.ResultApplied} {
		r, err := m.Apply(t.Context(), small(t, 3, i/2), ApplyOptions{}, quiet)
		if err != nil || r.Result != want {
			t.Errorf("%d: %q, %v", i, r.Result, err)
		}
	}
}

func TestAThousandRunsLeaveOneConnection(t *testing.T) {
	for _, tt := range []struct {
		what  string
		runs  int
		start func(t *testing.T) (Dialer, Target, func() int)
	}{
		{"against OpenSSH", 100, func(t *testing.T) (Dialer, Target, func() int) {
			s := programs.Start(t, sshtest.Options{})
			return dialer(t, s), at(s, s.Address), s.Sessions
		}},
		{"against a server of our own", 1000, func(t *testing.T) (Dialer, Target, func() int) {
			d, to := stranger(t, execServer(t, tellFacts))
			return d, to, func() int { return 0 }
		}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			d, to, processes := tt.start(t)
			line := sshtest.NewLine(t, to.Address, sshtest.LineOptions{})
			to.Address = line.Address
			m := client(t, d).Machine(to)
			if _, err := m.Facts(t.Context()); err != nil {
				t.Fatal(err)
			}
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
					return fmt.Sprintf("%d goroutines, %d before; %d processes on the machine, %d before", n, goroutines, p, sessions)
				}
				return ""
			})
		})
	}
}

// Without kept connections, and with runs that break, nothing stays either.
func TestNothingLeaksWhereNothingIsKept(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	line := sshtest.NewLine(t, s.Address, sshtest.LineOptions{})
	d := dialer(t, s)
	d.Limits.Kept = 0
	m := client(t, d).Machine(at(s, line.Address))
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
		if err != nil && !Retryable(err) {
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

// settle waits until nothing is wrong any more.
func settle(t *testing.T, wrong func() string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		problem := wrong()
		if problem == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatal(problem)
		}
	}
}

func TestOneSlowMachineHoldsUpNobody(t *testing.T) {
	s, line := hanging(t)
	d := dialer(t, s)
	d.Limits.Handshake = 4 * time.Second
	targets := []Target{at(s, sshtest.BlackHole(t)), at(s, sshtest.BlackHole(t)), at(s, sshtest.NewLine(t, s.Address, sshtest.LineOptions{Banner: time.Hour}).Address), at(s, line.Address)}
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
	errs := c.Each(ctx, targets, 2, func(ctx context.Context, m *Machine) error {
		_, err := m.Apply(ctx, small(t, 3, 1), ApplyOptions{}, quiet)
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
			t.Errorf("machine %d: %v", i, err)
		}
	}
}
