package agent

import (
	"context"
	"errors"
	"slices"

	"wmco/applier"
	"wmco/applier/agent/executables"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/bundle/published"
	"wmco/payload/sources"
)

// fetchesExecutables reports whether the agent fetches executables.
func (a *Agent) fetchesExecutables() bool {
	return a.Registry != nil && a.Cluster != nil && !a.Options.ReportOnly
}

// newFetcher returns what fetches executables beside the agent.
func (a *Agent) newFetcher(changed chan<- struct{}) *executables.Fetcher {
	return &executables.Fetcher{
		Registry: a.Registry, List: a.listExecutables, Stage: a.stageExecutables, Clock: a.Engine.Clock, Log: a.Log, Jitter: a.Options.Jitter,
		Changed: func() {
			select {
			case changed <- struct{}{}:
			default: // a report is due already
			}
		},
		Warn: func(ctx context.Context, message string) {
			a.sendEventToNode(ctx, Event{Warning: true, Reason: EventNotFetched, Message: message})
		},
	}
}

// noteExecutables notes the list of a bundle that was accepted: a bundle that cannot be applied may lack the very
// executables that it lists.
func (a *Agent) noteExecutables(b bundle.Bundle) {
	var data []byte
	for _, f := range b.Files() {
		if f.Path == sources.File {
			data = f.Content.Data
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listed, a.isListed = data, true
}

// listExecutables returns the list of the newest bundle; before one was read, that of the bundle that the host has.
func (a *Agent) listExecutables(ctx context.Context) ([]byte, error) {
	a.mu.Lock()
	data, known := a.listed, a.isListed
	a.mu.Unlock()
	if known {
		return data, nil
	}
	return a.readFile(sources.File)(ctx)
}

// stageExecutables keeps executables, and returns which the host lacks.
func (a *Agent) stageExecutables(ctx context.Context, all []archive.Content, from archive.Source) ([]bundle.Digest, error) {
	e := *a.Engine
	e.Emit = nil // what follows it is for the agent's own runs
	_, err := e.StageExecutables(ctx, all, a.isLacking, from, lockWait)
	var refused *applier.RefusedError
	if !errors.As(err, &refused) || len(refused.Missing) == 0 {
		return nil, err
	}
	var missing []bundle.Digest
	for _, m := range refused.Missing {
		missing = append(missing, m.Digest)
	}
	return missing, nil
}

// noteLacking notes executables without which the published bundle cannot be applied. What the applied bundle has is
// fetched only then: it was damaged.
func (a *Agent) noteLacking(digests []bundle.Digest) {
	a.mu.Lock()
	a.lacking = digests
	a.mu.Unlock()
	if a.fetcher != nil {
		a.fetcher.FetchAgain()
	}
}

func (a *Agent) isLacking(d bundle.Digest) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Contains(a.lacking, d)
}

// followFetch passes the permission to the fetcher, and follows a bundle again that lacked what has been fetched.
func (a *Agent) followFetch() {
	node, known := a.latestNode()
	if a.fetcher == nil || !known {
		return
	}
	a.fetcher.Permit(node.Fetch)
	f := &a.follower
	if ended := a.fetcher.CountEnded(); ended != f.fetches {
		f.fetches = ended
		if f.report.State == published.StatePayloadMissing {
			f.retryAt = a.sinceBoot()
		}
	}
}

// reportFetch adds how far the executables are, and that this agent fetches them.
func (a *Agent) reportFetch(r *published.Report) {
	if a.fetcher == nil {
		return
	}
	r.Features = slices.Sorted(slices.Values(append(r.Features, published.FeatureFetch)))
	r.Fetch = a.fetcher.Progress()
}
