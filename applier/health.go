package applier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/bundle"
)

// probePause is the pause between two probes of a service.
const probePause = 500 * time.Millisecond

// health waits until services are healthy.
type health struct {
	host  Host
	clock Clock
	// settle is Engine.Settle.
	settle   time.Duration
	progress *progress
}

// watched is a service that is waited for. Times are since the boot of the host, so that setting its clock changes
// nothing.
type watched struct {
	plan.WantedService
	// begin is when the wait began, since is when the service was first healthy as this process, 0 while it is not.
	begin, since time.Duration
	process      int
	healthy      bool
}

// awaitStarted waits until the services of a target are healthy that were started: each within the deadline of its
// probe, all at once. A service that was left alone is not checked.
func (h health) awaitStarted(ctx context.Context, t *plan.Target, started []string) error {
	begin := h.clock.SinceBoot()
	var list []*watched
	for _, s := range t.Services {
		if s.Run && slices.Contains(started, s.Config.Name) {
			list = append(list, &watched{WantedService: s, begin: begin})
		}
	}
	for {
		waiting, err := h.probeServices(ctx, list)
		if err != nil || waiting == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.clock.After(probePause):
		}
	}
}

// probeServices probes the services that are not healthy yet, and returns how many still are not. It returns an error
// for the first whose deadline has passed.
func (h health) probeServices(ctx context.Context, list []*watched) (int, error) {
	states, err := h.readStates(ctx, list)
	if err != nil {
		return 0, err
	}
	waiting := 0
	for i, w := range list {
		if w.healthy {
			continue
		}
		late := h.clock.SinceBoot()-w.begin > time.Duration(w.Probe.DeadlineSeconds)*time.Second
		reason := unhealthyReason(ctx, h.host, w.WantedService, states[i])
		if reason == "" {
			reason = w.noteHealthy(states[i].Process, h.clock.SinceBoot(), h.settleTime(w.Probe))
		} else {
			w.since = 0
		}
		switch {
		case w.healthy:
			h.progress.sendEvent(protocol.Event{Event: protocol.EventProbe, Service: w.Config.Name, Message: "healthy"})
			continue
		case late && reason != "":
			h.progress.sendEvent(protocol.Event{Event: protocol.EventProbe, Service: w.Config.Name, Message: reason})
			return waiting, &ServiceError{Name: w.Config.Name, Err: errors.New(reason)}
		}
		waiting++
	}
	return waiting, nil
}

// settleTime is how long a service has to stay healthy.
func (h health) settleTime(p bundle.Probe) time.Duration {
	d := time.Duration(cmp.Or(p.SettleSeconds, bundle.DefaultSettleSeconds)) * time.Second
	if h.settle > 0 {
		return min(d, h.settle)
	}
	return d
}

// noteHealthy notes that the service is healthy now, and whether it has been for long enough. It returns a reason if it
// is another process than before: one good answer between two crashes is no health.
func (w *watched) noteHealthy(process int, now, settle time.Duration) string {
	switch {
	case w.since == 0 && w.process != 0 && w.process != process, w.since != 0 && w.process != process:
		w.process, w.since = process, now
		return "its process ended and was started again"
	case w.since == 0:
		w.process, w.since = process, now
	}
	w.healthy = now-w.since >= settle
	return ""
}

func (h health) readStates(ctx context.Context, list []*watched) ([]plan.ServiceState, error) {
	var names []string
	for _, w := range list {
		names = append(names, w.Config.Name)
	}
	states, err := h.host.Services(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("observing services: %w", err)
	}
	return states, nil
}

// unhealthyReason returns why a service is not healthy at the moment, empty when it is.
func unhealthyReason(ctx context.Context, host Host, s plan.WantedService, have plan.ServiceState) string {
	if have.Status != plan.ServiceRunning {
		return "it is " + statusText(have.Status)
	}
	if s.Probe.Kind == "" || s.Probe.Kind == bundle.ProbeRunning {
		return ""
	}
	if err := host.Probe(ctx, s.Probe); err != nil {
		return err.Error()
	}
	return ""
}

func statusText(s plan.ServiceStatus) string {
	if s == plan.ServiceAbsent {
		return "absent"
	}
	return string(s)
}
