package remote

import (
	"context"
	"runtime"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"wmco/applier"
	"wmco/internal/sshtest"
)

// A hundred machines at once get the program and 8 MiB each from one process, and share what is sent.
func TestManyMachinesAtOnceTakeLittleMemory(t *testing.T) {
	machines, most := 100, uint64(300<<20)
	if testing.Short() {
		machines = 10
	}
	want := large(t, 8<<20)
	var signers []ssh.Signer
	var targets []Target
	d := Dialer{Limits: quick()}
	for range machines {
		s := programs.Start(t, sshtest.Options{Key: signerOf(signers)})
		signers = append(signers, s.Key)
		targets = append(targets, at(s, s.Address))
		if d.Pins == nil {
			d = dialer(t, s)
		}
	}
	d.Limits.Handshake, d.Limits.Silence = 5*time.Minute, 5*time.Minute
	c := client(t, d)
	stop, peak := make(chan struct{}), make(chan uint64)
	go watchMemory(stop, peak)
	begin := time.Now()
	errs := c.Each(t.Context(), targets, machines, func(ctx context.Context, m *Machine) error {
		r, err := m.Apply(ctx, want, ApplyOptions{}, quiet)
		if err == nil && r.Result != applier.ResultApplied {
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
	t.Logf("%d machines in %s, at most %d MiB from the system", machines, time.Since(begin).Round(time.Millisecond), used>>20)
	if used > most {
		t.Errorf("it took %d MiB", used>>20)
	}
}

// signerOf lets all servers take the first one's key.
func signerOf(all []ssh.Signer) ssh.Signer {
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// watchMemory tells the most that this process had from the system, in bytes.
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
