// Package etcd is an etcd in memory, as far as the storage of an API server asks one: revisions, reads of the past until
// they are compacted, writes that fail where another write was first, leases, watches from any revision.
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

// Save returns what is kept now, for Restore.
func (m *Memory) Save() map[string]*mvccpb.KeyValue {
	m.mu.Lock()
	defer m.mu.Unlock()
	saved := map[string]*mvccpb.KeyValue{}
	for _, name := range m.names {
		if kv := m.versionAt(name, m.revision); kv != nil {
			saved[name] = kv
		}
	}
	return saved
}

// bump is by how much a restore raises the revision.
const bump = 1_000_000

// Restore brings back what was saved, with the revisions of then. That of etcd goes on from a higher one, and all before it is compacted
// (etcdutl snapshot restore --bump-revision --mark-compacted). The API server must be down: watches that are open see nothing of it.
func (m *Memory) Restore(saved map[string]*mvccpb.KeyValue) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.versions, m.changes = map[string][]*mvccpb.KeyValue{}, nil
	for name, kv := range saved {
		m.versions[name] = []*mvccpb.KeyValue{kv}
	}
	m.names = slices.Sorted(maps.Keys(saved))
	m.revision += bump
	m.compacted = m.revision
	for resource := range m.written {
		m.written[resource] = m.revision
	}
}

// Compact forgets what was before a revision: reads and watches of it fail from now on.
func (m *Memory) Compact(revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.compacted = max(m.compacted, min(revision, m.revision))
	m.changes = slices.Delete(m.changes, 0, m.firstChange(m.compacted+1))
	for name, list := range m.versions {
		i := max(0, newestUpTo(list, m.compacted))
		if list = slices.Delete(list, 0, i); len(list) == 1 && list[0].Version == 0 {
			delete(m.versions, name)
		} else {
			m.versions[name] = list
		}
	}
	m.names = slices.Sorted(maps.Keys(m.versions))
}

// firstChange returns the index of the first change at a revision or later.
func (m *Memory) firstChange(revision int64) int {
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

// newestUpTo returns the index of the last version up to a revision, -1 if there is none.
func newestUpTo(list []*mvccpb.KeyValue, revision int64) int {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].ModRevision <= revision {
			return i
		}
	}
	return -1
}

// versionAt returns what a key has at a revision, nil if there is no such key then.
func (m *Memory) versionAt(key string, revision int64) *mvccpb.KeyValue {
	list := m.versions[key]
	if i := newestUpTo(list, revision); i >= 0 && list[i].Version > 0 {
		return list[i]
	}
	return nil
}

// checkRevision returns the revision that is read, or the error of etcd.
func (m *Memory) checkRevision(asked int64) (int64, error) {
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
	r, err := m.checkRevision(o.Revision)
	if err != nil {
		return kubernetes.GetResponse{}, err
	}
	return kubernetes.GetResponse{KV: m.versionAt(key, r), Revision: m.revision}, nil
}

// List implements kubernetes.Interface.
func (m *Memory) List(_ context.Context, prefix string, o kubernetes.ListOptions) (kubernetes.ListResponse, error) {
	from := prefix
	if o.Continue != "" {
		from = o.Continue
	}
	list, count, revision, err := m.listRange(from, clientv3.GetPrefixRangeEnd(prefix), o.Revision, o.Limit)
	return kubernetes.ListResponse{Kvs: list, Count: count, Revision: revision}, err
}

// listRange reads the keys from one up to another. Count is how many there are without the limit.
func (m *Memory) listRange(from, to string, at, limit int64) (list []*mvccpb.KeyValue, count, revision int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.checkRevision(at)
	if err != nil {
		return nil, 0, 0, err
	}
	i, _ := slices.BinarySearch(m.names, from)
	for _, name := range m.names[i:] {
		if name >= to {
			break
		}
		kv := m.versionAt(name, r)
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
	now := m.versionAt(key, m.revision)
	if revisionOf(now) != expected {
		return kubernetes.PutResponse{KV: now, Revision: m.revision}, nil
	}
	m.revision++
	next := &mvccpb.KeyValue{Key: []byte(key), Value: bytes.Clone(value), CreateRevision: m.revision, ModRevision: m.revision, Version: 1, Lease: int64(o.LeaseID)}
	if now != nil {
		next.CreateRevision, next.Version = now.CreateRevision, now.Version+1
	}
	m.addVersion(key, next, &clientv3.Event{Type: clientv3.EventTypePut, Kv: next, PrevKv: now})
	m.expireKey(key, o.LeaseID)
	return kubernetes.PutResponse{KV: next, Succeeded: true, Revision: m.revision}, nil
}

// OptimisticDelete implements kubernetes.Interface.
func (m *Memory) OptimisticDelete(_ context.Context, key string, expected int64, _ kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.versionAt(key, m.revision)
	if revisionOf(now) != expected {
		return kubernetes.DeleteResponse{KV: now, Revision: m.revision}, nil
	}
	m.removeKey(key, now)
	return kubernetes.DeleteResponse{KV: now, Succeeded: true, Revision: m.revision}, nil
}

func revisionOf(kv *mvccpb.KeyValue) int64 {
	if kv == nil {
		return 0
	}
	return kv.ModRevision
}

func (m *Memory) removeKey(key string, now *mvccpb.KeyValue) {
	m.revision++
	mark := &mvccpb.KeyValue{Key: []byte(key), ModRevision: m.revision}
	m.addVersion(key, mark, &clientv3.Event{Type: clientv3.EventTypeDelete, Kv: mark, PrevKv: now})
	m.expireKey(key, 0)
}

// LastChange is the revision of the last change of a resource; zero if there was none.
func (m *Memory) LastChange(resource string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.written[resource]
}

// addVersion adds a version of a key and tells the watches.
func (m *Memory) addVersion(key string, kv *mvccpb.KeyValue, e *clientv3.Event) {
	if i, found := slices.BinarySearch(m.names, key); !found {
		m.names = slices.Insert(m.names, i, key)
	}
	m.versions[key] = append(m.versions[key], kv)
	if parts := strings.Split(key, "/"); len(parts) > resourceOfKey {
		m.written[parts[resourceOfKey]] = m.revision
	}
	m.changes = append(m.changes, change{m.revision, e})
	for w := range m.watches {
		w.queueEvent(key, m.revision, e)
	}
}

// expireKey removes a key after the time of its lease.
func (m *Memory) expireKey(key string, lease clientv3.LeaseID) {
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
		if now := m.versionAt(key, m.revision); now != nil && now.Lease == int64(lease) && !m.closed {
			m.removeKey(key, now)
		}
	})
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
	list, count, revision, err := r.m.listRange(key, to, op.Rev(), op.Limit())
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
