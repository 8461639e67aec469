package leader

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// renew is how long the library would try to renew.
const renew = time.Minute

// world is a Lease, a process that has it, and the clocks of its computer.
type world struct {
	*Lock
	t      *testing.T
	leases *fake.Clientset
	clocks reading
	// away makes the API server fail; asked counts the questions for the Lease.
	away  bool
	asked int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, leases: fake.NewClientset(), clocks: reading{time.Unix(1_000_000, 0), time.Minute, time.Hour}}
	w.leases.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		w.asked++
		return w.away, nil, errors.New("away")
	})
	w.Lock = New(Options{Leases: w.leases.CoordinationV1(), Lease: types.NamespacedName{Namespace: "n", Name: "lease"}, Identity: "mine", Renew: renew})
	w.now = func() reading { return w.clocks }
	w.must(w.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "mine"}))
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// pass lets time pass on all clocks.
func (w *world) pass(d time.Duration) {
	w.clocks = reading{w.clocks.wall.Add(d), w.clocks.running + d, w.clocks.boot + d}
}

// take gives the Lease to another process.
func (w *world) take(holder string) {
	w.t.Helper()
	lease, err := w.leases.CoordinationV1().Leases("n").Get(w.t.Context(), "lease", metav1.GetOptions{})
	w.must(err)
	lease.Spec.HolderIdentity = &holder
	_, err = w.leases.CoordinationV1().Leases("n").Update(w.t.Context(), lease, metav1.UpdateOptions{})
	w.must(err)
}

func (w *world) holder() string {
	w.t.Helper()
	lease, err := w.leases.CoordinationV1().Leases("n").Get(w.t.Context(), "lease", metav1.GetOptions{})
	w.must(err)
	return *lease.Spec.HolderIdentity
}

// TestALeaseOfYearsEnds: whoever may edit Leases writes once how long it is not taken over, for which the library believes the Lease.
func TestALeaseOfYearsEnds(t *testing.T) {
	for written, want := range map[int]time.Duration{1 << 30: 2 * renew, 60: time.Minute} {
		w := newWorld(t)
		w.must(w.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "another", LeaseDurationSeconds: written}))
		record, raw, err := w.Get(t.Context())
		w.must(err)
		if got := time.Duration(record.LeaseDurationSeconds) * time.Second; got != want || !strings.Contains(string(raw), strconv.Itoa(written)) {
			t.Errorf("a Lease of %d s is one of %s, and is compared as %s", written, got, raw)
		}
	}
}

func isLost(l *Lock) bool {
	select {
	case <-l.Lost():
		return true
	default:
		return false
	}
}

// TestWhenAProcessMayChangeSomething: what has happened since it renewed the Lease, whether it may write to the cluster and change hosts
// then, and whether it ends.
func TestWhenAProcessMayChangeSomething(t *testing.T) {
	for name, tt := range map[string]struct {
		happens              func(*world)
		writes, changes, end bool
	}{
		"nothing":                                {func(*world) {}, true, true, false},
		"some time":                              {func(w *world) { w.pass(renew - time.Second) }, true, true, false},
		"it was stopped, another one leads":      {func(w *world) { w.pass(3 * renew); w.take("theirs") }, false, false, true},
		"it was stopped, no other one leads yet": {func(w *world) { w.pass(3 * renew) }, false, false, false},
		"suspended, no other one leads yet":      {func(w *world) { w.clocks.boot += 3 * renew; w.clocks.wall = w.clocks.wall.Add(3 * renew) }, false, false, false},
		"suspended, another one leads": {func(w *world) {
			w.clocks.boot += 3 * renew
			w.clocks.wall = w.clocks.wall.Add(3 * renew)
			w.take("theirs")
		}, false, false, true},
		"paused with all clocks, another one leads":          {func(w *world) { w.pass(2 * time.Second); w.take("theirs") }, true, false, true},
		"paused, the wall clock was set, another one leads":  {func(w *world) { w.clocks.wall = w.clocks.wall.Add(time.Hour); w.take("theirs") }, false, false, true},
		"the wall clock was set":                             {func(w *world) { w.clocks.wall = w.clocks.wall.Add(-time.Hour) }, true, true, false},
		"the wall clock was set, and the API server is away": {func(w *world) { w.clocks.wall = w.clocks.wall.Add(time.Hour); w.away = true }, false, false, false},
		"the API server is away for a while":                 {func(w *world) { w.pass(renew / 2); w.away = true }, true, true, false},
		"the API server is away for long":                    {func(w *world) { w.pass(2 * renew); w.away = true }, false, false, false},
		"the Lease was released":                             {func(w *world) { w.pass(2 * time.Second); w.take("") }, true, false, false},
		"it has released the Lease":                          {func(w *world) { w.must(w.Update(w.t.Context(), resourcelock.LeaderElectionRecord{})) }, false, false, false},
		"renewed after it was stopped": {func(w *world) {
			w.pass(3 * renew)
			w.must(w.Update(w.t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "mine"}))
		}, true, true, false},
		"the library has found another one that leads": {func(w *world) { w.take("theirs"); _, _, err := w.Get(w.t.Context()); w.must(err) }, false, false, true},
	} {
		for _, host := range []bool{false, true} {
			w := newWorld(t)
			tt.happens(w)
			ask, want, what := w.CheckLeading, tt.writes, "write"
			if host {
				ask, want, what = w.ConfirmLeading, tt.changes, "change a host"
			}
			err := ask(t.Context())
			if (err == nil) != want || err != nil && !errors.Is(err, ErrNotLeading) {
				t.Errorf("%s: may %s: %v, want %t", name, what, err, want)
			}
			if ends := tt.end && !want; isLost(w.Lock) != ends {
				t.Errorf("%s: asked whether it may %s, it ends: %t", name, what, !ends)
			}
		}
	}
}

// TestTheClocksOfThisComputer go on.
func TestTheClocksOfThisComputer(t *testing.T) {
	read := newClockReader()
	first := read()
	time.Sleep(10 * time.Millisecond)
	second := read()
	if age := second.ageSince(first); age < 10*time.Millisecond || age > time.Minute || second.wallClockJumped(first) || second.boot <= first.boot {
		t.Errorf("%+v, then %+v", first, second)
	}
}

// TestManyQuestionsAreOne: a thousand hosts are not a thousand requests.
func TestManyQuestionsAreOne(t *testing.T) {
	w := newWorld(t)
	w.pass(2 * askedFor)
	for range 100 {
		w.must(w.ConfirmLeading(t.Context()))
	}
	if w.asked != 1 {
		t.Errorf("the Lease was looked at %d times", w.asked)
	}
	w.pass(2 * askedFor)
	w.must(w.ConfirmLeading(t.Context()))
	if w.asked != 2 {
		t.Errorf("the Lease was looked at %d times", w.asked)
	}
	w.asked = 0
	for range 100 {
		w.must(w.CheckLeading(t.Context()))
	}
	if w.asked != 0 {
		t.Errorf("the Lease was looked at %d times for writes", w.asked)
	}
}

// TestTheLeaseOfAnotherProcessIsLeftAlone: the library would release it at its end, as it saw it as its own when it looked last.
func TestTheLeaseOfAnotherProcessIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.take("theirs")
	if _, _, err := w.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	var lost *LostError
	if err := w.Update(t.Context(), resourcelock.LeaderElectionRecord{}); !errors.As(err, &lost) || w.holder() != "theirs" {
		t.Errorf("%v; the holder is %q", err, w.holder())
	}
	if text := w.Err().Error(); strings.Contains(text, "\n") || !strings.Contains(text, "n/lease is held by theirs") {
		t.Errorf("the text is %q", text)
	}
}

// TestALookAtTheLeaseDoesNotRenewIt: the library renews what it has read, so it must not read what it has not judged.
func TestALookAtTheLeaseDoesNotRenewIt(t *testing.T) {
	w := newWorld(t)
	w.leases.PrependReactor("update", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		lease, _ := a.(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease)
		if lease.Labels["read"] != "" {
			t.Error("the library has what others have read")
		}
		return false, nil, nil
	})
	lease, err := w.leases.CoordinationV1().Leases("n").Get(t.Context(), "lease", metav1.GetOptions{})
	w.must(err)
	lease = lease.DeepCopy()
	lease.Labels = map[string]string{"read": "yes"}
	w.must(w.leases.Tracker().Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), lease, "n"))
	w.pass(2 * askedFor)
	w.must(w.ConfirmLeading(t.Context()))
	w.must(w.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "mine"}))
}

// TestAStandbyWritesWhatAllDo, and does not end because another one leads.
func TestAStandbyWritesWhatAllDo(t *testing.T) {
	w := newWorld(t)
	other := New(Options{Leases: w.leases.CoordinationV1(), Lease: types.NamespacedName{Namespace: "n", Name: "lease"}, Identity: "theirs", Renew: renew})
	if _, _, err := other.Get(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := other.CheckLeading(t.Context()); err != nil || isLost(other) {
		t.Errorf("%v, it ends: %t", err, isLost(other))
	}
	if err := other.ConfirmLeading(t.Context()); !errors.Is(err, ErrNotLeading) {
		t.Errorf("it may change hosts: %v", err)
	}
}
