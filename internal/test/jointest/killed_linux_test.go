package jointest_test

import (
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
)

// countdown kills an operator at one of its steps: what it asks of a host, or writes to the cluster. Under any load, as much is done
// by then.
type countdown struct {
	left atomic.Int64
	kill func()
}

// newCountdown returns a countdown of this many steps; zero never ends.
func newCountdown(steps int64, kill func()) *countdown {
	c := &countdown{kill: kill}
	c.left.Store(steps)
	return c
}

// killProcess kills this process.
func killProcess() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) } // it cannot fail

func (c *countdown) step() {
	if c.left.Add(-1) == 0 {
		c.kill()
	}
}

// wrap is for rest.Config.Wrap. Leases and Events are no work of the operator.
func (c *countdown) wrap(next http.RoundTripper) http.RoundTripper { return countedWrites{next, c} }

type countedWrites struct {
	http.RoundTripper
	steps *countdown
}

// RoundTrip implements http.RoundTripper.
func (w countedWrites) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases") && !strings.Contains(r.URL.Path, "/events") {
		w.steps.step()
	}
	return w.RoundTripper.RoundTrip(r)
}

// killed waits until the process has killed itself, or something is done, and ends it then.
func (o *operator) killed(done func() bool) {
	o.t.Helper()
	if o.life != nil {
		eventually(o.t, "the operator to be killed", func() bool { return o.life.hasEnded() || done() })
		o.kill()
		return
	}
	ended := make(chan struct{})
	o.once.Do(func() { go func() { _ = o.Wait(); close(ended) }() }) // it was killed
	o.t.Cleanup(func() { _ = o.Process.Kill() })                     // it may have ended
	eventually(o.t, "the operator to be killed", func() bool {
		select {
		case <-ended:
			return true
		default:
			return done()
		}
	})
	_ = o.Process.Kill() // it may have ended
	<-ended
	_ = o.stdin.Close()
}
