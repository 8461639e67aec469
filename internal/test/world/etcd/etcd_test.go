package etcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

// TestMemory writes, reads the past, compacts it, watches from a revision and lets a key expire.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		m := New()
		c := m.Client(ctx)
		put := func(key, value string, expected int64, o kubernetes.PutOptions) int64 {
			t.Helper()
			r, err := c.Kubernetes.OptimisticPut(ctx, key, []byte(value), expected, o)
			if err != nil || !r.Succeeded {
				t.Fatalf("%+v, %v", r, err)
			}
			return r.Revision
		}
		first := put("/registry/a/1", "one", 0, kubernetes.PutOptions{})
		second := put("/registry/a/1", "two", first, kubernetes.PutOptions{})
		if r, err := c.Kubernetes.OptimisticPut(ctx, "/registry/a/1", nil, first, kubernetes.PutOptions{GetOnFailure: true}); err != nil || r.Succeeded || string(r.KV.Value) != "two" {
			t.Errorf("a write from an old revision: %+v, %v", r, err)
		}
		if r, err := c.Kubernetes.Get(ctx, "/registry/a/1", kubernetes.GetOptions{Revision: first}); err != nil || string(r.KV.Value) != "one" {
			t.Errorf("the past: %+v, %v", r, err)
		}
		lease, err := c.Grant(ctx, 60)
		if err != nil {
			t.Fatal(err)
		}
		put("/registry/a/2", "short", 0, kubernetes.PutOptions{LeaseID: lease.ID})
		put("/registry/b/1", "other", 0, kubernetes.PutOptions{})
		events := c.Watch(ctx, "/registry/a/", clientv3.WithPrefix(), clientv3.WithRev(second), clientv3.WithPrevKV())
		for _, want := range []string{"PUT /registry/a/1", "PUT /registry/a/2", "DELETE /registry/a/2"} {
			e := (<-events).Events[0]
			if got := e.Type.String() + " " + string(e.Kv.Key); got != want {
				t.Errorf("the watch has seen %s, want %s", got, want)
			}
		}
		if list, err := c.Kubernetes.List(ctx, "/registry/a/", kubernetes.ListOptions{}); err != nil || len(list.Kvs) != 1 || list.Count != 1 {
			t.Errorf("%+v, %v", list, err)
		}
		m.Compact(m.Revision())
		if _, err := c.Kubernetes.Get(ctx, "/registry/a/1", kubernetes.GetOptions{Revision: first}); !errors.Is(err, rpctypes.ErrCompacted) {
			t.Errorf("a compacted revision: %v", err)
		}
		old := <-c.Watch(ctx, "/registry/a/", clientv3.WithPrefix(), clientv3.WithRev(second))
		if !errors.Is(old.Err(), rpctypes.ErrCompacted) {
			t.Errorf("a watch from a compacted revision: %v", old.Err())
		}
		if r, err := c.Kubernetes.OptimisticDelete(ctx, "/registry/a/1", second, kubernetes.DeleteOptions{}); err != nil || !r.Succeeded {
			t.Errorf("%+v, %v", r, err)
		}
		saved := m.Save()
		put("/registry/b/1", "changed", saved["/registry/b/1"].ModRevision, kubernetes.PutOptions{})
		put("/registry/b/2", "new", 0, kubernetes.PutOptions{})
		before := m.Revision()
		m.Restore(saved)
		if list, err := c.Kubernetes.List(ctx, "/registry/b/", kubernetes.ListOptions{}); err != nil || len(list.Kvs) != 1 || string(list.Kvs[0].Value) != "other" || list.Revision <= before {
			t.Errorf("after a restore: %+v, %v", list, err)
		}
		progress := c.Watch(ctx, "/registry/b/", clientv3.WithPrefix(), clientv3.WithProgressNotify())
		time.Sleep(progressEvery)
		if r := <-progress; !r.IsProgressNotify() || r.Header.Revision != m.Revision() {
			t.Errorf("%+v", r)
		}
	})
}
