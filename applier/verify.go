package applier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
	"wmco/bundle/archive"
)

const (
	// probePause is the pause between two probes of a service that is not healthy yet.
	probePause = 500 * time.Millisecond
	// settle is how long a service has to run as the same process for bundle.ProbeRunning.
	settle = 5 * time.Second
)

// healthy waits until the services are healthy that this run started, or an interrupted one before it: each within the
// deadline of its probe, all at once. A service that was left alone is not checked.
func (r *run) healthy(ctx context.Context, t *plan.Target) error {
	started := slices.DeleteFunc(slices.Clone(t.Services), func(s plan.WantedService) bool {
		return !s.Run || !slices.Contains(r.situation.Journal.Starts, s.Config.Name)
	})
	return r.wait(ctx, started)
}

// watched is a service that is waited for.
type watched struct {
	plan.WantedService
	process int
	since   time.Time
	reason  string
	healthy bool
}

func (r *run) wait(ctx context.Context, services []plan.WantedService) error {
	begin := r.Clock.Now()
	var list []*watched
	for _, s := range services {
		list = append(list, &watched{WantedService: s})
	}
	for {
		waiting, err := r.ask(ctx, list, begin)
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

// ask probes the services that are not healthy yet, and returns how many still are not. It returns an error for the first
// whose deadline has passed.
func (r *run) ask(ctx context.Context, list []*watched, begin time.Time) (int, error) {
	states, err := r.states(ctx, list)
	if err != nil {
		return 0, err
	}
	waiting := 0
	for i, w := range list {
		if w.healthy {
			continue
		}
		now := r.Clock.Now()
		w.reason = r.unhealthyReason(ctx, w, states[i], now)
		if w.reason == "" {
			w.healthy = true
			r.emit(Event{Event: EventProbe, Service: w.Config.Name, Message: "healthy"})
			continue
		}
		waiting++
		if now.Sub(begin) > w.deadline() {
			r.emit(Event{Event: EventProbe, Service: w.Config.Name, Message: w.reason})
			return waiting, &ServiceError{Name: w.Config.Name, Doing: "probing", Err: errors.New(w.reason)}
		}
	}
	return waiting, nil
}

func (w *watched) deadline() time.Duration {
	return max(time.Duration(w.Probe.DeadlineSeconds)*time.Second, settle+probePause)
}

func (r *run) states(ctx context.Context, list []*watched) ([]plan.ServiceState, error) {
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

// unhealthyReason returns why a service is not healthy, empty when it is.
func (r *run) unhealthyReason(ctx context.Context, w *watched, have plan.ServiceState, now time.Time) string {
	if have.Status != plan.ServiceRunning {
		w.process = 0
		return "it is " + statusText(have.Status)
	}
	if w.Probe.Kind == bundle.ProbeRunning {
		if w.process != have.Process || w.since.IsZero() {
			w.process, w.since = have.Process, now
		}
		if ran := now.Sub(w.since); ran < settle {
			return fmt.Sprintf("it has run for %s", ran.Round(time.Second))
		}
		return ""
	}
	if w.Probe.Kind == "" {
		return ""
	}
	if err := r.Host.Probe(ctx, w.Probe); err != nil {
		return err.Error()
	}
	return ""
}

// confirm waits for the caller's confirmation.
func (r *run) confirm(ctx context.Context) error {
	if r.options.Confirm == nil {
		return nil
	}
	// A confirmation that came too late for an earlier run does not count for this one.
	if err := r.Host.Remove(ctx, records.FileConfirm); err != nil {
		return fmt.Errorf("removing %s: %w", records.FileConfirm, err)
	}
	j := r.situation.Journal
	j.Phase, j.Waiting = records.PhaseConfirming, records.Waiting{Since: r.Clock.SinceBoot(), Limit: r.options.ConfirmWithin}
	j.Deadline = time.Time{}
	if err := r.enter(ctx, j); err != nil {
		return err
	}
	r.emit(Event{Event: EventConfirm, Bundle: j.Bundle.Manifest.Digest, Message: "waiting for confirmation"})
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := r.Clock.After(r.options.ConfirmWithin)
	go func() {
		select {
		case <-late:
			cancel(errUnconfirmed)
		case <-limited.Done():
		}
	}()
	if err := r.options.Confirm(limited); err != nil {
		if cause := context.Cause(limited); errors.Is(cause, errUnconfirmed) {
			return cause
		}
		return err
	}
	return nil
}

var errUnconfirmed = errors.New("not confirmed in time")

// Verify is Observe with every file read and every service probed. It writes nothing but the cache.
func (e *Engine) Verify(ctx context.Context, a *archive.Reader) (Observation, error) {
	if err := acceptable(a.Manifest); err != nil {
		return Observation{}, err
	}
	s, err := e.load(ctx)
	if err != nil {
		return Observation{}, asFault(err)
	}
	record := records.BundleRecord{Manifest: a.Manifest, Contents: a.Contents}
	t := s.target(record)
	_, p, err := e.observe(ctx, s, t, record, true)
	if err == nil {
		err = s.addCorrupt(ctx, &p)
	}
	if err != nil {
		return Observation{}, asFault(err)
	}
	if s.Ledger.Applied() != "" {
		s.SaveCache(ctx) // without the entries that were wrong
	}
	o := e.observation(s, record, p)
	o.Unhealthy, err = e.unhealthy(ctx, t)
	return o, asFault(err)
}

// unhealthy probes each service that should run, once. One that has to run for a while only has to run.
func (e *Engine) unhealthy(ctx context.Context, t *plan.Target) ([]Unhealthy, error) {
	names := t.ServiceNames()
	states, err := e.Host.Services(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("observing services: %w", err)
	}
	var list []Unhealthy
	for _, s := range t.Services {
		i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, s.Config.Name) })
		if !s.Run {
			continue
		}
		if states[i].Status != plan.ServiceRunning {
			list = append(list, Unhealthy{Service: s.Config.Name, Reason: "it is " + statusText(states[i].Status)})
			continue
		}
		if s.Probe.Kind == "" || s.Probe.Kind == bundle.ProbeRunning {
			continue
		}
		if err := e.Host.Probe(ctx, s.Probe); err != nil {
			list = append(list, Unhealthy{Service: s.Config.Name, Reason: err.Error()})
		}
	}
	return list, nil
}

func statusText(s plan.ServiceStatus) string {
	if s == plan.ServiceAbsent {
		return "absent"
	}
	return string(s)
}
