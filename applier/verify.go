package applier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
)

// probePause is the pause between two probes of a service.
const probePause = 500 * time.Millisecond

// awaitHealthy waits until the services are healthy that this run started, or an interrupted one before it: each within the
// deadline of its probe, all at once. A service that was left alone is not checked.
func (r *run) awaitHealthy(ctx context.Context, t *plan.Target) error {
	started := slices.DeleteFunc(slices.Clone(t.Services), func(s plan.WantedService) bool {
		return !s.Run || !slices.Contains(r.records.Journal.Starts, s.Config.Name)
	})
	return r.probeUntilHealthy(ctx, started)
}

// watched is a service that is waited for. Times are since the boot of the host, so that setting its clock changes nothing.
type watched struct {
	plan.WantedService
	// begin is when the wait began, since is when the service was first healthy as this process, 0 while it is not.
	begin, since time.Duration
	process      int
	healthy      bool
}

func (r *run) probeUntilHealthy(ctx context.Context, services []plan.WantedService) error {
	begin := r.Clock.SinceBoot()
	var list []*watched
	for _, s := range services {
		list = append(list, &watched{WantedService: s, begin: begin})
	}
	for {
		waiting, err := r.probeServices(ctx, list)
		if err != nil || waiting == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.Clock.After(probePause):
		}
	}
}

// probeServices probes the services that are not healthy yet, and returns how many still are not. It returns an error for the first
// whose deadline has passed.
func (r *run) probeServices(ctx context.Context, list []*watched) (int, error) {
	states, err := r.readStates(ctx, list)
	if err != nil {
		return 0, err
	}
	waiting := 0
	for i, w := range list {
		if w.healthy {
			continue
		}
		late := r.Clock.SinceBoot()-w.begin > time.Duration(w.Probe.DeadlineSeconds)*time.Second
		reason := unhealthyReason(ctx, r.Host, w.WantedService, states[i])
		if reason == "" {
			reason = w.noteHealthy(states[i].Process, r.Clock.SinceBoot(), r.settleTime(w.Probe))
		} else {
			w.since = 0
		}
		switch {
		case w.healthy:
			r.progress.emit(Event{Event: EventProbe, Service: w.Config.Name, Message: "healthy"})
			continue
		case late && reason != "":
			r.progress.emit(Event{Event: EventProbe, Service: w.Config.Name, Message: reason})
			return waiting, &ServiceError{Name: w.Config.Name, Doing: "probing", Err: errors.New(reason)}
		}
		waiting++
	}
	return waiting, nil
}

// settleTime is how long a service has to stay healthy.
func (r *run) settleTime(p bundle.Probe) time.Duration {
	d := time.Duration(cmp.Or(p.SettleSeconds, bundle.DefaultSettleSeconds)) * time.Second
	if r.Settle > 0 {
		return min(d, r.Settle)
	}
	return d
}

// noteHealthy notes that the service is healthy now, and whether it has been for long enough. It returns a reason if it is another
// process than before: one good answer between two crashes is no health.
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

func (r *run) readStates(ctx context.Context, list []*watched) ([]plan.ServiceState, error) {
	var names []string
	for _, w := range list {
		names = append(names, w.Config.Name)
	}
	states, err := r.Host.Services(ctx, names)
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

// awaitConfirmation waits for the caller's confirmation.
func (r *run) awaitConfirmation(ctx context.Context) error {
	ask := r.confirmationSource()
	if ask == nil || r.agreed {
		return nil
	}
	// A confirmation that came too late for an earlier run does not count for this one.
	if err := r.Host.Remove(ctx, records.FileConfirm); err != nil {
		return fmt.Errorf("removing %s: %w", records.FileConfirm, err)
	}
	j := r.records.Journal
	j.Phase, j.Waiting.Since = records.PhaseConfirming, r.Clock.SinceBoot()
	if err := r.records.WriteJournal(ctx, j); err != nil {
		return err
	}
	return r.pollConfirmation(ctx, ask, j.Waiting.Limit)
}

// confirmationSource returns how the run is confirmed, nil if it needs no confirmation or nothing here can ask for it.
func (r *run) confirmationSource() func(context.Context) error {
	if !r.repairs {
		return r.options.Confirm
	}
	if j := r.records.Journal; j.Confirmer != "" && r.options.Resume != nil {
		return r.options.Resume(j.Confirmer)
	}
	return nil
}

// pollConfirmation asks for the confirmation until its time is up.
func (r *run) pollConfirmation(ctx context.Context, ask func(context.Context) error, within time.Duration) error {
	j := r.records.Journal
	r.progress.emit(Event{Event: EventConfirm, Bundle: j.Bundle.Manifest.Digest, Message: "waiting for confirmation"})
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := r.Clock.After(within)
	go func() {
		select {
		case <-late:
			cancel(errUnconfirmed)
		case <-limited.Done():
		}
	}()
	if err := ask(limited); err != nil {
		switch cause := context.Cause(limited); {
		case !errors.Is(cause, errUnconfirmed):
			return err
		case errors.Is(err, context.Canceled):
			return cause
		default:
			return fmt.Errorf("%w: %w", cause, err)
		}
	}
	return ctx.Err() // an answer that comes because the process is asked to stop is none
}

var errUnconfirmed = errors.New("not confirmed in time")

func statusText(s plan.ServiceStatus) string {
	if s == plan.ServiceAbsent {
		return "absent"
	}
	return string(s)
}
