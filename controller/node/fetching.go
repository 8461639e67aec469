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

// slotLimit is how long a node that fetches can keep others from it: what it reports of its progress is not believed for
// longer.
const slotLimit = time.Hour

// fetches decides which nodes fetch executables.
type fetches struct {
	// list returns all Windows Nodes.
	list    func(context.Context) ([]windowsnode.Node, error)
	silence windowsnode.Silence
	elapsed func() time.Duration
	// countHosts returns how many hosts fetch that have no node agent yet.
	countHosts func() int

	mu sync.Mutex
	// permitted are the nodes that may fetch payload, by name; nil before the first one. Their annotations do not count,
	// because a kubelet may write those of its own Node, but for those that an operator before this one has written.
	permitted map[string]*fetch
	payload   bundle.Digest
}

// fetch is how far a node is, in the time of this process.
type fetch struct {
	// begun is when it was permitted, moved when it had more bytes than ever before, and most how many.
	begun, moved time.Duration
	most         int64
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
	p := progressOf(node, chosen.Digest)
	if p.Done && !node.LacksPayload() {
		return wayDone, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.payload != chosen.Digest {
		f.payload, f.permitted = chosen.Digest, nil
	}
	now, own := f.elapsed(), f.permitted[node.Name]
	if own == nil {
		if is, err := f.isFull(ctx, chosen.AtOnce); is || err != nil {
			return wayWait, err
		}
		f.permitted[node.Name] = &fetch{begun: now, moved: now, most: p.Present}
		return wayFetch, nil
	}
	if p.Present > own.most {
		own.most, own.moved = p.Present, now
	}
	if p.Failed || now-own.moved > fetchPatience {
		return copies, nil
	}
	return wayFetch, nil
}

// progressOf returns how far a node reports to be with a payload.
func progressOf(n windowsnode.Node, payload bundle.Digest) published.FetchProgress {
	if n.Report.Fetch.Payload != payload {
		return published.FetchProgress{}
	}
	return n.Report.Fetch
}

// isFull reports whether as many nodes and hosts fetch as may.
func (f *fetches) isFull(ctx context.Context, most int) (bool, error) {
	n, err := f.countFetching(ctx)
	return n+f.countHosts() >= most, err
}

// countNodes returns how many nodes fetch.
func (f *fetches) countNodes(ctx context.Context) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.payload == "" {
		return 0, nil
	}
	return f.countFetching(ctx)
}

// countFetching returns how many nodes fetch. One that is off or silent, that has all, or that makes no progress, does not count.
func (f *fetches) countFetching(ctx context.Context) (int, error) {
	nodes, err := f.list(ctx)
	if err != nil {
		return 0, err
	}
	now := f.elapsed()
	if f.permitted == nil {
		f.permitted = map[string]*fetch{}
		for _, n := range nodes {
			if n.Annotations[published.FetchAnnotation] == string(f.payload) {
				f.permitted[n.Name] = &fetch{begun: now, moved: now}
			}
		}
	}
	count := 0
	for _, n := range nodes {
		own, p := f.permitted[n.Name], progressOf(n, f.payload)
		if own != nil && !p.Done && !p.Failed && now-own.moved <= fetchPatience && now-own.begun <= slotLimit && n.IsReady() && !f.silence.IsSilent(n) {
			count++
		}
	}
	return count, nil
}

// forgetNode forgets a node that fetches no longer.
func (f *fetches) forgetNode(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.permitted, name)
}
