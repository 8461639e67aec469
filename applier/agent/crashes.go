package agent

import (
	"context"
	"slices"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
)

// crashes notices services that end without a stop. The service control manager starts such a service again by its
// recovery, with another process id (learn.microsoft.com, SERVICE_FAILURE_ACTIONS), so nothing else would show it.
// Services that this agent starts and stops are looked at again after it has done so.
//
// One that a person restarts counts as ended, too. Its exit code would tell (learn.microsoft.com, SERVICE_STATUS:
// NO_ERROR after a normal stop), but only while it is stopped: a running service has NO_ERROR again. Recovery restarts
// it after ten seconds, and looks are up to thirty seconds apart and wait for an apply.
type crashes struct {
	// names are the services of the bundle, but the agent's own.
	names []string
	// processes are those that ran when they were last looked at, by name.
	processes map[string]int
}

// followServices notes the services of the bundle that is applied.
func (c *crashes) followServices(b bundle.Bundle, self string) {
	c.names, c.processes = nil, nil
	for _, s := range b.Services() {
		if s.Name != self {
			c.names = append(c.names, s.Name)
		}
	}
}

// findCrashed returns the services that have ended since the last look, and remembers those that run now.
func (c *crashes) findCrashed(states []plan.ServiceState) []string {
	now := map[string]int{}
	var ended []string
	for i, s := range states {
		name := c.names[i]
		if s.Process != 0 {
			now[name] = s.Process
		}
		if before := c.processes[name]; before != 0 && before != s.Process {
			ended = append(ended, name)
		}
	}
	c.processes = now
	return ended
}

// lookForCrashes reports the services that have ended by themselves since the bundle was applied.
func (a *Agent) lookForCrashes(ctx context.Context) {
	for _, name := range a.lookAtServices(ctx) {
		r := &a.follower.report
		if r.State != published.StateApplied || slices.Contains(r.Crashed, name) {
			continue
		}
		r.Crashed = append(r.Crashed, name)
		slices.Sort(r.Crashed)
		a.Log.Warn("a service has ended unexpectedly", "service", name, "bundle", r.Applied.Short())
		a.sendEventToNode(ctx, Event{Warning: true, Reason: EventCrashed,
			Message: "service " + name + " has ended unexpectedly since bundle " + r.Applied.Short() + " was applied"})
	}
}

func (a *Agent) lookAtServices(ctx context.Context) []string {
	if len(a.crashes.names) == 0 {
		return nil
	}
	states, err := a.Engine.Host.Services(ctx, a.crashes.names)
	if err != nil || len(states) != len(a.crashes.names) {
		return nil // the next look compares with the last one that worked
	}
	return a.crashes.findCrashed(states)
}
