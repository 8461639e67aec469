package etcd

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// watch is one request of a watch. What it has not sent yet is in queue.
type watch struct {
	from, to string
	since    int64
	mu       sync.Mutex
	queue    []clientv3.WatchResponse
	wake     chan struct{}
}

func (w *watch) queueEvent(key string, revision int64, e *clientv3.Event) {
	if revision < w.since || key != w.from && (w.to == "" || key < w.from || key >= w.to) {
		return
	}
	w.queueResponse(clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: revision}, Events: []*clientv3.Event{e}})
}

func (w *watch) queueResponse(r clientv3.WatchResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, r)
	select {
	case w.wake <- struct{}{}:
	default: // it will look
	}
}

func (w *watch) takeQueue() []clientv3.WatchResponse {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.queue
	w.queue = nil
	return list
}

// Watch implements clientv3.Watcher.
func (m *Memory) Watch(ctx context.Context, key string, options ...clientv3.OpOption) clientv3.WatchChan {
	op := clientv3.OpGet(key, options...)
	w := &watch{from: key, to: string(op.RangeBytes()), since: op.Rev(), wake: make(chan struct{}, 1)}
	m.mu.Lock()
	if w.since == 0 {
		w.since = m.revision + 1
	}
	if w.since <= m.compacted {
		w.queueResponse(clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: m.revision}, CompactRevision: m.compacted, Canceled: true})
	} else {
		for _, c := range m.changes[m.firstChange(w.since):] {
			w.queueEvent(string(c.event.Kv.Key), c.revision, c.event)
		}
		m.watches[w] = true
	}
	m.mu.Unlock()
	out := make(chan clientv3.WatchResponse)
	go func() {
		defer close(out)
		defer m.endWatch(w)
		for {
			for _, r := range w.takeQueue() {
				select {
				case out <- r:
				case <-ctx.Done():
					return
				}
				if r.Canceled {
					return
				}
			}
			var progress <-chan time.Time
			if op.IsProgressNotify() {
				progress = time.After(progressEvery)
			}
			select {
			case <-w.wake:
			case <-progress:
				m.queueProgress(w)
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// progressEvery is how often a watch that asks for it is told the newest revision when there is nothing else.
const progressEvery = 4 * time.Minute

// queueProgress tells a watch the newest revision.
func (m *Memory) queueProgress(w *watch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w.queueResponse(clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: m.revision}})
}

func (m *Memory) endWatch(w *watch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.watches, w)
}

// RequestProgress implements clientv3.Watcher: all watches are told the newest revision.
func (m *Memory) RequestProgress(context.Context) error {
	m.mu.Lock()
	all := slices.Collect(maps.Keys(m.watches))
	m.mu.Unlock()
	for _, w := range all {
		m.queueProgress(w)
	}
	return nil
}
