package node

import (
	"context"
	"sync"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/configure"
	"wmco/controller/windowsnode"
	"wmco/render"
)

// fetchPatience is how long a node that may fetch executables can make no progress before the operator copies them: its
// agent may be silent, its node paused, or the bundle with the list not be published.
const fetchPatience = 10 * time.Minute

// way is how a node gets the executables that it lacks.
type way int

const (
	// wayCopy: the operator copies them over SSH.
	wayCopy way = iota
	// wayFetch: the node may fetch them, and has not finished.
	wayFetch
	// wayWait: as many nodes fetch as may.
	wayWait
	// wayDone: it has them.
	wayDone
	// wayNone: they cannot be fetched, and must not be copied.
	wayNone
)

// fetches decides which nodes fetch executables.
type fetches struct {
	// list returns all Windows Nodes.
	list    func(context.Context) ([]windowsnode.Node, error)
	silence windowsnode.Silence
	elapsed func() time.Duration

	mu sync.Mutex
	// since is when a node that may fetch made progress last, by its name; had is how much it had then.
	since map[string]time.Duration
	had   map[string]published.FetchProgress
}

// chooseWay returns how a node gets executables that it lacks.
func (f *fetches) chooseWay(ctx context.Context, node windowsnode.Node, chosen configure.Chosen) (way, error) {
	copies := wayCopy
	if chosen.From == render.ExecutablesFromRegistry {
		copies = wayNone
	}
	if !chosen.Listed || chosen.From == render.ExecutablesFromSSH || node.ReportError != nil || !node.Report.Has(published.FeatureFetch) {
		return copies, nil
	}
	progress := node.Report.Fetch
	if progress.Payload != chosen.Digest {
		progress = published.FetchProgress{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !mayFetch(node, chosen.Digest) {
		nodes, err := f.list(ctx)
		if err != nil {
			return wayWait, err
		}
		if f.countFetching(nodes, chosen.Digest) >= chosen.AtOnce {
			return wayWait, nil
		}
		f.noteProgress(node.Name, progress)
		return wayFetch, nil
	}
	if _, known := f.since[node.Name]; !known || f.had[node.Name] != progress {
		f.noteProgress(node.Name, progress)
	}
	switch {
	case progress.Done && !node.LacksPayload():
		return wayDone, nil
	case progress.Failed, f.elapsed()-f.since[node.Name] > fetchPatience:
		return copies, nil
	}
	return wayFetch, nil
}

func (f *fetches) noteProgress(name string, p published.FetchProgress) {
	if f.since == nil {
		f.since, f.had = map[string]time.Duration{}, map[string]published.FetchProgress{}
	}
	f.since[name], f.had[name] = f.elapsed(), p
}

// forgetNode forgets a node that fetches no longer.
func (f *fetches) forgetNode(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.since, name)
	delete(f.had, name)
}

// mayFetch reports whether the node is permitted to fetch a payload.
func mayFetch(n windowsnode.Node, payload bundle.Digest) bool {
	return payload != "" && n.Annotations[published.FetchAnnotation] == string(payload)
}

// countFetching returns how many nodes fetch: those that may, and those that were permitted a moment ago, which the cache
// may not show yet. One that is off or silent, that has all, or that makes no progress, does not count.
func (f *fetches) countFetching(nodes []windowsnode.Node, payload bundle.Digest) int {
	n := 0
	for _, node := range nodes {
		since, begun := f.since[node.Name]
		idle, p := f.elapsed()-since, node.Report.Fetch
		if !mayFetch(node, payload) {
			if begun && idle < configure.AgainSoon {
				n++
			}
			continue
		}
		ended := p.Payload == payload && (p.Done || p.Failed)
		if stuck := begun && idle > fetchPatience; !ended && !stuck && node.IsReady() && !f.silence.IsSilent(node) {
			n++
		}
	}
	return n
}
