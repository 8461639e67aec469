package ssh

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/crypto/ssh"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/internal/test/sshtest"
)

// The line counts how often the client sends after the host has: that is a round trip, or what both send at the same time.
func TestRoundTripsOfARun(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	if _, err := agent(t, s).Apply(t.Context(), small(t, 30, 0), remote.ApplyOptions{}, quiet); err != nil {
		t.Fatal(err)
	}
	line := sshtest.NewLine(t, s.Address, sshtest.LineOptions{})
	m := client(t, dialer(t, s)).AgentFor(at(s, line.Address))
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "run\tround trips\tprograms started\tbytes up\tbytes down")
	for i, step := range []struct {
		what    string
		version int
		result  protocol.Result
		// most is the limit of round trips; 0 is none.
		most, starts int
	}{
		{"new connection, nothing differs", 0, protocol.ResultSame, 0, 1},
		{"kept connection, nothing differs", 0, protocol.ResultSame, 3, 1},
		{"kept connection, one file differs", 1, protocol.ResultApplied, 5, 2},
		{"kept connection, nothing differs again", 1, protocol.ResultSame, 3, 1},
	} {
		want := small(t, 30, step.version)
		before := len(s.Starts())
		line.Stats()
		r, err := m.Apply(t.Context(), want, remote.ApplyOptions{}, quiet)
		if err != nil || r.Result != step.result {
			t.Fatalf("%d: %q, %v", i, r.Result, err)
		}
		starts, stats := len(s.Starts())-before, line.Stats()
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\n", step.what, stats.RoundTrips, starts, stats.Up, stats.Down)
		if step.most > 0 && stats.RoundTrips > step.most || starts != step.starts {
			t.Errorf("%s: %d round trips and %d programs, want at most %d and %d", step.what, stats.RoundTrips, starts, step.most, step.starts)
		}
	}
	_ = w.Flush()
	t.Log("\n" + table.String())
}

// mostInSync is how many bytes a host in sync may cost over a new connection, in both directions.
const mostInSync = 40_000

// TestAThinLine shows what a run costs on a thin line, of 100 ms a round trip and 10 Mbit/s with allCuts. The agent travels once: a host in sync costs a
// handshake, a question and an answer.
func TestAThinLine(t *testing.T) {
	s, p := realHost(t, sshtest.Options{})
	var options sshtest.LineOptions
	if allCuts() {
		options = sshtest.LineOptions{Delay: 50 * time.Millisecond, Rate: 10e6 / 8}
	}
	line := sshtest.NewLine(t, s.Address, options)
	d := dialer(t, s)
	d.Limits.Silence = time.Hour
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "run\tbytes up\tbytes down\ttook")
	for _, step := range []struct {
		what    string
		version int
		result  protocol.Result
		most    int64
	}{
		{"first contact", 0, protocol.ResultApplied, p.Size * 11 / 10},
		{"new connection, nothing differs", 0, protocol.ResultSame, mostInSync},
		{"new connection, one file differs", 1, protocol.ResultApplied, 2 * mostInSync},
	} {
		line.Stats()
		begin := time.Now()
		c := remote.NewClient(NewTransport(d), p, remote.DefaultLimits())
		r, err := c.AgentFor(at(s, line.Address)).Apply(t.Context(), small(t, 30, step.version), remote.ApplyOptions{}, quiet)
		took := time.Since(begin)
		_ = c.Close() // it only ends connections
		if err != nil || r.Result != step.result {
			t.Fatalf("%s: %q, %v", step.what, r.Result, err)
		}
		stats := line.Stats()
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", step.what, stats.Up, stats.Down, took.Round(time.Millisecond))
		if stats.Up+stats.Down > step.most {
			t.Errorf("%s: %d bytes up and %d down, want at most %d", step.what, stats.Up, stats.Down, step.most)
		}
	}
	_ = w.Flush()
	t.Log("\n" + table.String())
}

// Twenty hosts at once, or a hundred (allCuts), get the agent and 8 MiB each from one process, which share the contents.
func TestManyHostsAtOnceTakeLittleMemory(t *testing.T) {
	hosts, most := 20, uint64(120<<20)
	if allCuts() {
		hosts, most = 100, 300<<20
	}
	want := large(t, 8<<20)
	var signers []ssh.Signer
	var targets []remote.Target
	d := Dialer{Limits: generous()}
	for range hosts {
		s := programs.Start(t, sshtest.Options{Key: signerOf(signers)})
		signers = append(signers, s.Key)
		targets = append(targets, at(s, s.Address))
		if d.Pins == nil {
			d = dialer(t, s)
		}
	}
	c := client(t, d)
	// What is needed counts, not what a collector that a busy computer delays has yet to free.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(most) * 3 / 4))
	stop, peak := make(chan struct{}), make(chan uint64)
	go watchMemory(stop, peak)
	begin := time.Now()
	errs := c.ForEachHost(t.Context(), targets, hosts, func(ctx context.Context, m *remote.Agent) error {
		r, err := m.Apply(ctx, want, remote.ApplyOptions{}, quiet)
		if err == nil && r.Result != protocol.ResultApplied {
			t.Errorf("%s: %q", m.Target(), r.Result)
		}
		return err
	})
	close(stop)
	used := <-peak
	for i, err := range errs {
		if err != nil {
			t.Errorf("%s: %v", targets[i], err)
		}
	}
	t.Logf("%d hosts in %s, at most %d MiB from the system", hosts, time.Since(begin).Round(time.Millisecond), used>>20)
	if used > most {
		t.Errorf("it took %d MiB", used>>20)
	}
}

// signerOf returns the first server's key, for all others to accept.
func signerOf(all []ssh.Signer) ssh.Signer {
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// watchMemory sends the most memory that this process had from the system, in bytes.
func watchMemory(stop chan struct{}, peak chan uint64) {
	var most uint64
	for {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.Sys-m.HeapReleased)
		select {
		case <-stop:
			peak <- most
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}
