package agent

import (
	"context"
	"slices"
	"sync"

	"wmco/applier/agent/executables"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/bundle/published"
	"wmco/payload/sources"
)

// fetchable has what the fetcher reads of the agent.
type fetchable struct {
	mu sync.Mutex
	// list is that of the newest bundle that was read, nil if it has none; known is false before.
	list  []byte
	known bool
	// lacking are the executables without which the published bundle could not be applied.
	lacking []bundle.Digest
}

// fetchesExecutables reports whether the agent fetches executables.
func (a *Agent) fetchesExecutables() bool {
	return a.Registry != nil && a.Cluster != nil && !a.Options.ReportOnly
}

// newFetcher returns what fetches executables beside the agent.
func (a *Agent) newFetcher(changed chan<- struct{}) *executables.Fetcher {
	return &executables.Fetcher{
		Registry: a.Registry, List: a.listExecutables, Stage: a.stageExecutables, Clock: a.Engine.Clock, Log: a.Log, Jitter: a.Options.Jitter,
		Changed: func() { wake(changed) },
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
	a.fetchable.mu.Lock()
	defer a.fetchable.mu.Unlock()
	a.fetchable.list, a.fetchable.known = data, true
}

// listExecutables returns the list of the newest bundle; before one was read, that of the bundle that the host has.
func (a *Agent) listExecutables(ctx context.Context) ([]byte, error) {
	a.fetchable.mu.Lock()
	data, known := a.fetchable.list, a.fetchable.known
	a.fetchable.mu.Unlock()
	if known {
		return data, nil
	}
	return a.readFile(sources.File)(ctx)
}

// stageExecutables keeps executables, and returns which the host lacks.
func (a *Agent) stageExecutables(ctx context.Context, all []archive.Content, from archive.Source) ([]bundle.Digest, error) {
	e := *a.Engine
	e.Emit = nil // what follows it is for the agent's own runs
	return e.StageExecutables(ctx, all, a.isLacking, from, lockWait)
}

// noteLacking notes executables without which the published bundle cannot be applied. What the applied bundle has is
// fetched only then: it was damaged.
func (a *Agent) noteLacking(digests []bundle.Digest) {
	a.fetchable.mu.Lock()
	a.fetchable.lacking = digests
	a.fetchable.mu.Unlock()
	if a.fetcher != nil {
		a.fetcher.FetchAgain()
	}
}

func (a *Agent) isLacking(d bundle.Digest) bool {
	a.fetchable.mu.Lock()
	defer a.fetchable.mu.Unlock()
	return slices.Contains(a.fetchable.lacking, d)
}

// followFetch passes the permission to the fetcher, and follows a bundle again that lacked what has been fetched.
func (a *Agent) followFetch() {
	node, known := a.latestNode()
	if a.fetcher == nil || !known {
		return
	}
	a.fetcher.PermitPayload(node.Fetch)
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
