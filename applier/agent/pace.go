package agent

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// spreadOver is the time over which agents come back that have lost the API server at once.
const spreadOver = 15 * time.Second

// pace spreads the agents that lose the API server at once: client-go asks again at once after a watch that ended, and
// only then with a growing pause.
type pace struct {
	connection Connection
	// asked reports whether a request was made; end is when the watch ends that was begun last, zero while none was.
	asked bool
	end   time.Duration
}

// waitToList waits before a list that is not the first request.
func (p *pace) waitToList(ctx context.Context) error {
	again := p.asked
	p.asked, p.end = true, 0
	if !again {
		return nil
	}
	return p.waitForPace(ctx)
}

// waitToWatch waits before a watch that follows one which ended before its time. What follows a list or a whole watch
// is due.
func (p *pace) waitToWatch(ctx context.Context, o metav1.ListOptions) error {
	lost := p.end != 0 && p.connection.Clock.SinceBoot() < p.end
	p.asked, p.end = true, 0
	if lost {
		if err := p.waitForPace(ctx); err != nil {
			return err
		}
	}
	if o.TimeoutSeconds != nil {
		p.end = p.connection.Clock.SinceBoot() + time.Duration(*o.TimeoutSeconds)*time.Second - time.Second
	}
	return nil
}

func (p *pace) waitForPace(ctx context.Context) error {
	if p.connection.Spread == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.connection.Clock.After(p.connection.Spread(spreadOver)):
		return nil
	}
}
