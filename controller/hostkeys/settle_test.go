package hostkeys

import (
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/controller/base"
)

// TestAFleetThatJoinsIsLookedAtOnce: a thousand hosts write a thousand records.
func TestAFleetThatJoinsIsLookedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := priorityqueue.New[reconcile.Request]("test")
		defer q.ShutDown()
		all := base.EnqueueAllAfter[base.Object](settle)
		record := base.NewObject(base.ConfigMapKind())
		for range 1000 {
			all.Create(t.Context(), event.TypedCreateEvent[base.Object]{Object: record}, q)
			all.Update(t.Context(), event.TypedUpdateEvent[base.Object]{ObjectOld: record, ObjectNew: record}, q)
		}
		all.Delete(t.Context(), event.TypedDeleteEvent[base.Object]{Object: record}, q)
		looks := 0
		go func() {
			for {
				r, ended := q.Get()
				if ended {
					return
				}
				looks++
				q.Done(r)
			}
		}()
		time.Sleep(settle - 1)
		synctest.Wait()
		if looks != 0 {
			t.Errorf("%d looks at all records before the changes have settled", looks)
		}
		time.Sleep(2 * settle)
		synctest.Wait()
		if looks != 1 {
			t.Errorf("%d looks at all records, want 1", looks)
		}
	})
}
