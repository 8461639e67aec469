package ssh

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"wmco/applier/remote"
	"wmco/internal/test/sshtest"
	"wmco/internal/test/sshtest/simulated"
)

// stuck are servers that never come to an end, each in another phase.
func stuck(t *testing.T) map[string]string {
	t.Helper()
	hangs := func(ssh.Channel) { <-t.Context().Done() }
	return map[string]string{
		"no channel is opened": channelServer(t, func(channels <-chan ssh.NewChannel) {
			for range channels { // nobody answers
			}
		}),
		"no command is started": sessionServer(t, func(_ ssh.Channel, requests <-chan *ssh.Request) {
			for range requests { // nobody answers
			}
		}),
		"requests that are not waited for": sessionServer(t, func(channel ssh.Channel, _ <-chan *ssh.Request) {
			for range 100 { // more than the library keeps, so that it reads nothing else until they are taken
				if _, err := channel.SendRequest("unknown", false, nil); err != nil {
					return
				}
			}
			hangs(channel)
		}),
		"a command is silent": execServer(t, hangs),
		"a byte now and then": execServer(t, func(c ssh.Channel) {
			for ; ; time.Sleep(50 * time.Millisecond) {
				if _, err := c.Write([]byte(" ")); err != nil {
					return
				}
			}
		}),
		"an SFTP server is silent": sessionServer(t, func(channel ssh.Channel, requests <-chan *ssh.Request) {
			for r := range requests {
				_ = r.Reply(true, nil)
			}
			hangs(channel)
		}),
	}
}

func TestEveryPhaseOfACommandHasALimit(t *testing.T) {
	wants := map[string]string{
		"no channel is opened": "unreachable: opening a channel to", "no command is started": "interrupted", "requests that are not waited for": "interrupted", "a command is silent": "interrupted",
		"a byte now and then": "interrupted", "an SFTP server is silent": "interrupted",
	}
	for what, address := range stuck(t) {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d, to := stranger(t, address)
			d.Limits.Channel, d.Limits.Silence = 500*time.Millisecond, 2*time.Second
			l := remote.DefaultLimits()
			l.Question, l.Upload = 3*time.Second, 3*time.Second
			c := remote.NewClient(NewTransport(d), fake, l)
			defer c.Close()
			begin := time.Now()
			_, err := c.AgentFor(to).Facts(t.Context())
			if kind(err) != wants[what] || time.Since(begin) > 15*time.Second {
				t.Errorf("%s after %s, want %s: %v", kind(err), time.Since(begin), wants[what], err)
			}
			if !remote.IsRetryable(err) {
				t.Errorf("not retryable: %v", err)
			}
		})
	}
}

// TestTheEndOfTheContextEndsEachPhase: no host holds up an operator that is asked to stop, whatever it does.
func TestTheEndOfTheContextEndsEachPhase(t *testing.T) {
	for what, address := range stuck(t) {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d, to := stranger(t, address)
			d.Limits = Limits{}
			c := remote.NewClient(NewTransport(d), fake, remote.DefaultLimits())
			defer c.Close()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := c.AgentFor(to).Facts(ctx)
				ended <- err
			}()
			time.Sleep(300 * time.Millisecond) // it is in the phase, on a quiet computer
			cancel()
			select {
			case err := <-ended:
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			case <-time.After(15 * time.Second):
				t.Fatal("the call goes on after the end of its context")
			}
		})
	}
}

// A host that lacks the agent, and whose SFTP server stops: at once, or in the middle of the upload. Nothing but the limit of an answer
// ends that soon.
func TestEachAnswerOverSFTPHasALimit(t *testing.T) {
	for _, stops := range []simulated.Silent{simulated.SilentSFTP, simulated.SilentUpload} {
		t.Run(string(stops), func(t *testing.T) {
			t.Parallel()
			s := programs.Start(t, sshtest.Options{Settings: simulated.Settings{Silent: stops}})
			d := dialer(t, s)
			d.Limits.Channel, d.Limits.Silence = 2*time.Second, time.Hour
			l := remote.DefaultLimits()
			l.Upload = time.Hour
			c := remote.NewClient(NewTransport(d), fake, l)
			defer c.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := c.AgentFor(at(s, s.Address)).Facts(ctx)
			if ctx.Err() != nil || !errors.As(err, new(*remote.LimitError)) || !remote.IsRetryable(err) {
				t.Errorf("%s: %v", kind(err), err)
			}
		})
	}
}

func TestHostsThatAreStuckGiveTheirPlacesToOthers(t *testing.T) {
	const others, parallel = 40, 16
	addresses := stuck(t)
	delete(addresses, "no channel is opened") // its limit ends it sooner
	delete(addresses, "no command is started")
	var targets []remote.Target
	for len(targets) < others {
		for _, address := range addresses {
			targets = append(targets, remote.Target{User: fmt.Sprint("stuck-", len(targets)), Address: address})
		}
	}
	d, good := stranger(t, execServer(t, sendFacts))
	for i := range 3 {
		targets = append(targets, remote.Target{User: fmt.Sprint("good-", i), Address: good.Address})
	}
	l := remote.DefaultLimits()
	l.Idle = 300 * time.Millisecond
	c := remote.NewClient(NewTransport(d), fake, l)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var served atomic.Int64
	c.ForEachHost(ctx, targets, parallel, func(ctx context.Context, a *remote.Agent) error {
		_, err := a.Facts(ctx)
		if err == nil && served.Add(1) == 3 {
			cancel()
		}
		return err
	})
	if served.Load() != 3 {
		t.Errorf("%d hosts were served in a minute", served.Load())
	}
}
