// Package etcd is an etcd in memory, as far as the storage of an API server asks one: revisions, reads of the past until
// they are compacted, writes that fail where somebody else was first, leases, watches from any revision.
//
//	k8s.io/apiserver/pkg/storage/etcd3 --Get, List, OptimisticPut, OptimisticDelete, Watch, Grant--> Memory
//
// Calls answer at once and never fail, unless the revision is compacted or in the future. Whatever else the client of
// etcd can do panics.
package etcd

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

// Memory is the contents of an etcd. Its zero value cannot be used: see New.
type Memory struct {
	mu       sync.Mutex
	revision int64
	// compacted is the oldest revision that can be read, less one.
	compacted int64
	// keys are in order, with all their versions since the compaction.
	names    []string
	versions map[string][]*mvccpb.KeyValue
	// changes are the events since the compaction.
	changes []change
	watches map[*watch]bool
	leases  map[clientv3.LeaseID]time.Duration
	// written is the revision of the last change of each resource: the second part of a key.
	written map[string]int64
	// expiring are the timers of keys with a lease.
	expiring map[string]*time.Timer
	closed   bool
}

// change is one event at one revision.
type change struct {
	revision int64
	event    *clientv3.Event
}

// New returns an empty one. Its first revision is 1, as that of etcd.
func New() *Memory {
	return &Memory{
		revision: 1, versions: map[string][]*mvccpb.KeyValue{}, watches: map[*watch]bool{}, written: map[string]int64{},
		leases: map[clientv3.LeaseID]time.Duration{}, expiring: map[string]*time.Timer{},
	}
}

// Client returns a client of it, whose context ends its watches.
func (m *Memory) Client(ctx context.Context) *kubernetes.Client {
	c := clientv3.NewCtxClient(ctx)
	c.KV, c.Watcher, c.Lease = reads{m: m}, m, leases{m: m}
	return &kubernetes.Client{Client: c, Kubernetes: m}
}

// Close ends the leases. Nothing expires any longer.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, t := range m.expiring {
		t.Stop()
	}
	return nil
}

// Compact forgets what was before a revision: reads and watches of it fail from now on.
func (m *Memory) Compact(revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.compacted = max(m.compacted, min(revision, m.revision))
	m.changes = slices.Delete(m.changes, 0, m.since(m.compacted+1))
	for name, list := range m.versions {
		i := max(0, newest(list, m.compacted))
		if list = slices.Delete(list, 0, i); len(list) == 1 && list[0].Version == 0 {
			delete(m.versions, name)
		} else {
			m.versions[name] = list
		}
	}
	m.names = slices.Sorted(maps.Keys(m.versions))
}

// since returns the index of the first change at a revision or later.
func (m *Memory) since(revision int64) int {
	i, _ := slices.BinarySearchFunc(m.changes, revision, func(c change, r int64) int { return cmp.Compare(c.revision, r) })
	return i
}

// Revision is that of the last write.
func (m *Memory) Revision() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.revision
}

// resourceOfKey is the part of a key that names its resource: /registry/RESOURCE/...
const resourceOfKey = 2

// newest returns the index of the last version up to a revision, -1 if there is none.
func newest(list []*mvccpb.KeyValue, revision int64) int {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].ModRevision <= revision {
			return i
		}
	}
	return -1
}

// at returns what a key has at a revision, nil if there is no such key then.
func (m *Memory) at(key string, revision int64) *mvccpb.KeyValue {
	list := m.versions[key]
	if i := newest(list, revision); i >= 0 && list[i].Version > 0 {
		return list[i]
	}
	return nil
}

// check returns the revision that is read, or the error of etcd.
func (m *Memory) check(asked int64) (int64, error) {
	switch {
	case asked == 0:
		return m.revision, nil
	case asked > m.revision:
		return 0, rpctypes.ErrFutureRev
	case asked <= m.compacted && m.compacted > 0 && asked < m.compacted:
		return 0, rpctypes.ErrCompacted
	}
	return asked, nil
}

// Get implements kubernetes.Interface.
func (m *Memory) Get(_ context.Context, key string, o kubernetes.GetOptions) (kubernetes.GetResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.check(o.Revision)
	if err != nil {
		return kubernetes.GetResponse{}, err
	}
	return kubernetes.GetResponse{KV: m.at(key, r), Revision: m.revision}, nil
}

// List implements kubernetes.Interface.
func (m *Memory) List(_ context.Context, prefix string, o kubernetes.ListOptions) (kubernetes.ListResponse, error) {
	from := prefix
	if o.Continue != "" {
		from = o.Continue
	}
	list, count, revision, err := m.scan(from, clientv3.GetPrefixRangeEnd(prefix), o.Revision, o.Limit)
	return kubernetes.ListResponse{Kvs: list, Count: count, Revision: revision}, err
}

// scan reads the keys from one up to another. Count is how many there are without the limit.
func (m *Memory) scan(from, to string, at, limit int64) (list []*mvccpb.KeyValue, count, revision int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.check(at)
	if err != nil {
		return nil, 0, 0, err
	}
	i, _ := slices.BinarySearch(m.names, from)
	for _, name := range m.names[i:] {
		if name >= to {
			break
		}
		kv := m.at(name, r)
		if kv == nil {
			continue
		}
		if count++; limit == 0 || count <= limit {
			list = append(list, kv)
		}
	}
	return list, count, m.revision, nil
}

// Count implements kubernetes.Interface.
func (m *Memory) Count(ctx context.Context, prefix string, _ kubernetes.CountOptions) (int64, error) {
	r, err := m.List(ctx, prefix, kubernetes.ListOptions{})
	return r.Count, err
}

// OptimisticPut implements kubernetes.Interface.
func (m *Memory) OptimisticPut(_ context.Context, key string, value []byte, expected int64, o kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.at(key, m.revision)
	if modified(now) != expected {
		return kubernetes.PutResponse{KV: now, Revision: m.revision}, nil
	}
	m.revision++
	next := &mvccpb.KeyValue{Key: []byte(key), Value: bytes.Clone(value), CreateRevision: m.revision, ModRevision: m.revision, Version: 1, Lease: int64(o.LeaseID)}
	if now != nil {
		next.CreateRevision, next.Version = now.CreateRevision, now.Version+1
	}
	m.write(key, next, &clientv3.Event{Type: clientv3.EventTypePut, Kv: next, PrevKv: now})
	m.expire(key, o.LeaseID)
	return kubernetes.PutResponse{KV: next, Succeeded: true, Revision: m.revision}, nil
}

// OptimisticDelete implements kubernetes.Interface.
func (m *Memory) OptimisticDelete(_ context.Context, key string, expected int64, _ kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.at(key, m.revision)
	if modified(now) != expected {
		return kubernetes.DeleteResponse{KV: now, Revision: m.revision}, nil
	}
	m.remove(key, now)
	return kubernetes.DeleteResponse{KV: now, Succeeded: true, Revision: m.revision}, nil
}

func modified(kv *mvccpb.KeyValue) int64 {
	if kv == nil {
		return 0
	}
	return kv.ModRevision
}

func (m *Memory) remove(key string, now *mvccpb.KeyValue) {
	m.revision++
	mark := &mvccpb.KeyValue{Key: []byte(key), ModRevision: m.revision}
	m.write(key, mark, &clientv3.Event{Type: clientv3.EventTypeDelete, Kv: mark, PrevKv: now})
	m.expire(key, 0)
}

// LastChange is the revision of the last change of a resource; zero if there was none.
func (m *Memory) LastChange(resource string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.written[resource]
}

// write adds a version of a key and tells the watches.
func (m *Memory) write(key string, kv *mvccpb.KeyValue, e *clientv3.Event) {
	if i, found := slices.BinarySearch(m.names, key); !found {
		m.names = slices.Insert(m.names, i, key)
	}
	m.versions[key] = append(m.versions[key], kv)
	if parts := strings.Split(key, "/"); len(parts) > resourceOfKey {
		m.written[parts[resourceOfKey]] = m.revision
	}
	m.changes = append(m.changes, change{m.revision, e})
	for w := range m.watches {
		w.add(key, m.revision, e)
	}
}

// expire removes a key after the time of its lease.
func (m *Memory) expire(key string, lease clientv3.LeaseID) {
	if t := m.expiring[key]; t != nil {
		t.Stop()
		delete(m.expiring, key)
	}
	if lease == 0 || m.closed {
		return
	}
	m.expiring[key] = time.AfterFunc(m.leases[lease], func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if now := m.at(key, m.revision); now != nil && now.Lease == int64(lease) && !m.closed {
			m.remove(key, now)
		}
	})
}

// watch is one request of a watch. What it has not sent yet is in queue.
type watch struct {
	from, to string
	since    int64
	mu       sync.Mutex
	queue    []clientv3.WatchResponse
	wake     chan struct{}
}

func (w *watch) add(key string, revision int64, e *clientv3.Event) {
	if revision < w.since || key != w.from && (w.to == "" || key < w.from || key >= w.to) {
		return
	}
	w.put(clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: revision}, Events: []*clientv3.Event{e}})
}

func (w *watch) put(r clientv3.WatchResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, r)
	select {
	case w.wake <- struct{}{}:
	default: // it will look
	}
}

func (w *watch) take() []clientv3.WatchResponse {
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
		w.put(clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: m.revision}, CompactRevision: m.compacted, Canceled: true})
	} else {
		for _, c := range m.changes[m.since(w.since):] {
			w.add(string(c.event.Kv.Key), c.revision, c.event)
		}
		m.watches[w] = true
	}
	m.mu.Unlock()
	out := make(chan clientv3.WatchResponse)
	go func() {
		defer close(out)
		defer m.forget(w)
		for {
			for _, r := range w.take() {
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
				m.notify(w)
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// progressEvery is how often a watch that asks for it is told the newest revision when there is nothing else.
const progressEvery = 4 * time.Minute

// notify tells a watch the newest revision.
func (m *Memory) notify(w *watch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w.put(clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: m.revision}})
}

func (m *Memory) forget(w *watch) {
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
		m.notify(w)
	}
	return nil
}

// reads is the part of the key-value interface that the storage asks for besides kubernetes.Interface.
type reads struct {
	clientv3.KV
	m *Memory
}

// Get implements clientv3.KV.
func (r reads) Get(_ context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	op := clientv3.OpGet(key, options...)
	to := string(op.RangeBytes())
	if to == "" {
		to = key + "\x00"
	}
	list, count, revision, err := r.m.scan(key, to, op.Rev(), op.Limit())
	if err != nil {
		return nil, err
	}
	return &clientv3.GetResponse{Header: &pb.ResponseHeader{Revision: revision}, Kvs: list, Count: count, More: int64(len(list)) < count}, nil
}

// leases grants leases that nothing renews.
type leases struct {
	clientv3.Lease
	m *Memory
}

// Grant implements clientv3.Lease.
func (l leases) Grant(_ context.Context, seconds int64) (*clientv3.LeaseGrantResponse, error) {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	id := clientv3.LeaseID(len(l.m.leases) + 1)
	l.m.leases[id] = time.Duration(seconds) * time.Second
	return &clientv3.LeaseGrantResponse{ResponseHeader: &pb.ResponseHeader{Revision: l.m.revision}, ID: id, TTL: seconds}, nil
}

// Close implements clientv3.Lease.
func (leases) Close() error { return nil }
