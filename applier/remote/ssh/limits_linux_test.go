package ssh

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"wmco/applier/remote"
	"wmco/internal/test/sshtest"
	"wmco/internal/test/sshtest/simulated"
)

// stuckServer never comes to an end.
type stuckServer struct {
	address string
	// reached is closed when a client is in the phase in which the server is stuck.
	reached chan struct{}
	once    sync.Once
}

func (s *stuckServer) reach() { s.once.Do(func() { close(s.reached) }) }

// stuck are servers that never come to an end, each in another phase.
func stuck(t *testing.T) map[string]*stuckServer {
	t.Helper()
	hangs := func(ssh.Channel) { <-t.Context().Done() }
	all := map[string]*stuckServer{}
	add := func(what string, serve func(reach func()) string) {
		s := &stuckServer{reached: make(chan struct{})}
		s.address, all[what] = serve(s.reach), s
	}
	add("no channel is opened", func(reach func()) string {
		return channelServer(t, func(channels <-chan ssh.NewChannel) {
			for range channels { // without an answer
				reach()
			}
		})
	})
	add("no command is started", func(reach func()) string {
		return sessionServer(t, func(_ ssh.Channel, requests <-chan *ssh.Request) {
			for range requests { // without an answer
				reach()
			}
		})
	})
	add("requests that are not waited for", func(reach func()) string {
		return sessionServer(t, func(channel ssh.Channel, _ <-chan *ssh.Request) {
			for range 100 { // more than the library keeps, so that it reads nothing else until they are taken
				if _, err := channel.SendRequest("unknown", false, nil); err != nil {
					return
				}
			}
			reach()
			hangs(channel)
		})
	})
	add("a command is silent", func(reach func()) string {
		return execServer(t, func(c ssh.Channel) {
			reach()
			hangs(c)
		})
	})
	add("a byte now and then", func(reach func()) string {
		return execServer(t, func(c ssh.Channel) {
			for ; ; time.Sleep(50 * time.Millisecond) {
				if _, err := c.Write([]byte(" ")); err != nil {
					return
				}
				reach()
			}
		})
	})
	add("an SFTP server is silent", func(reach func()) string {
		return sessionServer(t, func(channel ssh.Channel, requests <-chan *ssh.Request) {
			for r := range requests {
				_ = r.Reply(true, nil)
				if r.Type == "exec" { // the host lacks the agent
					sendStatus(channel, 127)
					_ = channel.Close()
					return
				}
				reach()
			}
			hangs(channel)
		})
	})
	return all
}

func TestEveryPhaseOfACommandHasALimit(t *testing.T) {
	const limit = 5 * time.Second // of one phase, in which nothing else has to be done on a busy computer than to come to it
	type limits struct {
		channel, silence, question time.Duration
		want                       string
	}
	wants := map[string]limits{
		"no channel is opened":             {limit, patience, patience, "unreachable: opening a channel to"},
		"no command is started":            {limit, patience, patience, "interrupted"},
		"requests that are not waited for": {limit, patience, patience, "interrupted"},
		"a command is silent":              {patience, limit, patience, "interrupted"},
		"a byte now and then":              {patience, patience, limit, "interrupted"},
		"an SFTP server is silent":         {limit, patience, patience, "interrupted"},
	}
	for what, server := range stuck(t) {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d, to := stranger(t, server.address)
			want := wants[what]
			d.Limits.Channel, d.Limits.Silence = want.channel, want.silence
			l := remote.DefaultLimits()
			l.Question, l.Upload = want.question, patience
			c := remote.NewClient(NewTransport(d), fake, l)
			defer c.Close()
			begin := time.Now()
			_, err := c.AgentFor(to).Facts(t.Context())
			if kind(err) != want.want || time.Since(begin) > 2*time.Minute {
				t.Errorf("%s after %s, want %s: %v", kind(err), time.Since(begin), want.want, err)
			}
			if !remote.IsRetryable(err) {
				t.Errorf("not retryable: %v", err)
			}
		})
	}
}

// TestTheEndOfTheContextEndsEachPhase: no host holds up an operator that is asked to stop, whatever it does.
func TestTheEndOfTheContextEndsEachPhase(t *testing.T) {
	for what, server := range stuck(t) {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d, to := stranger(t, server.address)
			d.Limits = Limits{}
			c := remote.NewClient(NewTransport(d), fake, remote.DefaultLimits())
			defer c.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := c.AgentFor(to).Facts(ctx)
				ended <- err
			}()
			select {
			case <-server.reached:
			case err := <-ended:
				t.Errorf("it ended before it was in the phase: %v", err)
				return
			}
			cancel()
			select {
			case err := <-ended:
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			case <-time.After(patience):
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
			ctx, cancel := context.WithTimeout(t.Context(), patience)
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
		for _, server := range addresses {
			targets = append(targets, remote.Target{User: fmt.Sprint("stuck-", len(targets)), Address: server.address})
		}
	}
	d, good := stranger(t, execServer(t, sendFacts))
	for i := range 3 {
		targets = append(targets, remote.Target{User: fmt.Sprint("good-", i), Address: good.Address})
	}
	l := remote.DefaultLimits()
	l.Idle = 2 * time.Second
	c := remote.NewClient(NewTransport(d), fake, l)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
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
		t.Errorf("%d hosts were served, want 3", served.Load())
	}
}
