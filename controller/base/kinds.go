package base

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"wmco/controller/gather/objects"
)

// KindsPeriod is how often the cluster is asked for kinds that it did not serve, or refused. What is removed is noticed
// without that: the API server deletes the objects, and ends the watch.
const KindsPeriod = 30 * time.Second

// Kinds are those that cannot be watched now: the cluster does not serve them, or refuses to list them. What needs one
// begins when it can be watched. A cache would wait for it for ever, and everything that reads the cache with it.
//
//	WatchWhenServed --served, may be listed--> what watches it --its informer is refused--> missing: reads return why
//	   '----otherwise--> missing: reads return why --every KindsPeriod: when it can be--> what watches it
//
// A watch goes on when the right to it is taken away. It is noticed when the API server has ended the watch: the cache
// keeps its state of then, without an error.
type Kinds struct {
	mapper  meta.RESTMapper
	live    client.Reader
	log     logr.Logger
	refused *RefusedWatches
	clock   clock.Clock

	mu      sync.Mutex
	missing map[schema.GroupVersionKind]*missingKind
	// watched are the wants of each kind, onChange is called when a kind that was watched is missing, or
	// is there again.
	watched  map[schema.GroupVersionKind][]objects.Want
	onChange []func()
}

// RefusedWatches are the kinds whose informers were refused since they were looked at last.
type RefusedWatches struct {
	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]bool
	wake  chan struct{}
}

// NewRefusedWatches returns none.
func NewRefusedWatches() *RefusedWatches {
	return &RefusedWatches{kinds: map[schema.GroupVersionKind]bool{}, wake: make(chan struct{}, 1)}
}

// noteRefusedKind notes that the informer of a kind was refused, and has it looked at.
func (r *RefusedWatches) noteRefusedKind(kind schema.GroupVersionKind) {
	r.putBack([]schema.GroupVersionKind{kind})
	select {
	case r.wake <- struct{}{}:
	default: // it is woken already
	}
}

// putBack notes kinds that are looked at after a pause.
func (r *RefusedWatches) putBack(kinds []schema.GroupVersionKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kind := range kinds {
		r.kinds[kind] = true
	}
}

// takeRefusedKinds returns the kinds, and forgets them.
func (r *RefusedWatches) takeRefusedKinds() []schema.GroupVersionKind {
	r.mu.Lock()
	defer r.mu.Unlock()
	kinds := slices.Collect(maps.Keys(r.kinds))
	clear(r.kinds)
	return kinds
}

// missingKind is a kind that cannot be watched.
type missingKind struct {
	// errs are why, by namespace; empty for all.
	errs  map[string]error
	wants []objects.Want
	// begin is called when all of it can be watched.
	begin []func() error
}

// NewKinds returns kinds that are all served, as far as is known. Refused is what the informers of the cache note.
func NewKinds(mapper meta.RESTMapper, live client.Reader, refused *RefusedWatches, log logr.Logger) *Kinds {
	return &Kinds{
		mapper: mapper, live: live, refused: refused, clock: clock.RealClock{}, log: log,
		missing: map[schema.GroupVersionKind]*missingKind{}, watched: map[schema.GroupVersionKind][]objects.Want{},
	}
}

// OnChange calls do when a kind that was watched cannot be watched any longer, and when it can be again.
func (k *Kinds) OnChange(do func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.onChange = append(k.onChange, do)
}

// WatchWhenServed calls do when all objects that are wanted can be watched: now, or later. They are of one kind.
func (k *Kinds) WatchWhenServed(ctx context.Context, wants []objects.Want, do func() error) error {
	errs, err := k.checkWatchable(ctx, wants)
	if err != nil {
		return err
	}
	kind := KindOf(wants[0])
	k.mu.Lock()
	k.watched[kind] = append(k.watched[kind], wants...)
	k.mu.Unlock()
	if len(errs) == 0 {
		return do()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.missing[kind]
	if m == nil {
		m = &missingKind{}
		k.missing[kind] = m
		k.log.Info("a kind cannot be watched; it is looked for again", "kind", kind.Kind, "group", kind.Group, "every",
			KindsPeriod, "error", firstError(errs))
	}
	m.errs, m.wants, m.begin = errs, append(m.wants, wants...), append(m.begin, do)
	return nil
}

func firstError(errs map[string]error) error {
	return errs[slices.Min(slices.Collect(maps.Keys(errs)))]
}

// checkWatchable returns why objects cannot be watched, by namespace. The error is of an API server that gives no
// answer.
func (k *Kinds) checkWatchable(ctx context.Context, wants []objects.Want) (map[string]error, error) {
	errs := map[string]error{}
	for _, w := range wants {
		switch err := k.listOne(ctx, w); {
		case meta.IsNoMatchError(err):
			errs[w.Namespace] = err
		case apierrors.IsNotFound(err): // a mapper that has not noticed that the kind was removed
			errs[w.Namespace] = &meta.NoKindMatchError{GroupKind: KindOf(w).GroupKind(),
				SearchedVersions: []string{w.Version}}
		case apierrors.IsForbidden(err):
			errs[w.Namespace] = &objects.WatchError{Err: err}
		case err != nil:
			return nil, fmt.Errorf("looking for kind %s of %s: %w", w.Kind, w.Group, err)
		}
	}
	return errs, nil
}

// listOne asks for one object, as a cache would ask for all.
func (k *Kinds) listOne(ctx context.Context, w objects.Want) error {
	kind := KindOf(w)
	if _, err := k.mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return err
	}
	return k.live.List(ctx, MetadataList(kind), &client.ListOptions{Namespace: w.Namespace, FieldSelector: byName(w),
		LabelSelector: labelSelectorOf(w), Limit: 1})
}

// Start implements manager.Runnable: it looks for missing kinds until the context ends.
func (k *Kinds) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.clock.After(KindsPeriod):
		case <-k.refused.wake:
		}
		k.holdRefused(ctx)
		if err := k.watchServed(ctx); err != nil {
			return err
		}
	}
}

// holdRefused looks whether kinds whose informers were refused can be watched: if not, reads of them return why from
// now on. Their informers go on, so nothing has to begin when they can be.
func (k *Kinds) holdRefused(ctx context.Context) {
	all := k.refused.takeRefusedKinds()
	for i, kind := range all {
		k.mu.Lock()
		wants, known := k.watched[kind], k.missing[kind] != nil
		k.mu.Unlock()
		if known || len(wants) == 0 {
			continue
		}
		errs, err := k.checkWatchable(ctx, wants)
		if err != nil {
			k.refused.putBack(all[i:]) // the API server gives no answer
			return
		}
		if len(errs) == 0 {
			continue
		}
		k.log.Info("a kind cannot be watched any longer; it is looked for again", "kind", kind.Kind, "group",
			kind.Group, "every", KindsPeriod, "error", firstError(errs))
		k.mu.Lock()
		k.missing[kind] = &missingKind{errs: errs, wants: wants}
		changed := slices.Clone(k.onChange)
		k.mu.Unlock()
		for _, do := range changed {
			do()
		}
	}
}

// watchServed begins what can be watched now.
func (k *Kinds) watchServed(ctx context.Context) error {
	k.mu.Lock()
	missing := maps.Clone(k.missing)
	k.mu.Unlock()
	for kind, m := range missing {
		errs, err := k.checkWatchable(ctx, m.wants)
		if err != nil {
			k.log.V(1).Info("looking for a kind", "kind", kind.Kind, "group", kind.Group, "error", err)
			continue
		}
		k.mu.Lock()
		m.errs = errs
		if len(errs) == 0 {
			delete(k.missing, kind)
		}
		k.mu.Unlock()
		if len(errs) > 0 {
			continue
		}
		k.log.Info("a kind can be watched now", "kind", kind.Kind, "group", kind.Group)
		for _, begin := range m.begin {
			if err := begin(); err != nil {
				return fmt.Errorf("watching kind %s: %w", kind.Kind, err)
			}
		}
		k.mu.Lock()
		changed := slices.Clone(k.onChange)
		k.mu.Unlock()
		for _, do := range changed {
			do()
		}
	}
	return nil
}

// whyNotWatched returns why objects of a kind in a namespace, or in all if that is empty, cannot be read; nil if they
// can.
func (k *Kinds) whyNotWatched(kind schema.GroupVersionKind, namespace string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.missing[kind]
	if m == nil {
		return nil
	}
	if err, ok := m.errs[""]; ok {
		return err
	}
	if namespace == "" && len(m.errs) > 0 { // a list of all that is watched
		return firstError(m.errs)
	}
	return m.errs[namespace]
}

// WatchedClient returns a client whose reads of kinds that cannot be watched return why, instead of waiting.
func (k *Kinds) WatchedClient(c client.Client) client.Client { return watchedReader{c, k} }

type watchedReader struct {
	client.Client
	kinds *Kinds
}

// Get implements client.Reader.
func (r watchedReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(o, r.Scheme())
	if err == nil {
		err = r.kinds.whyNotWatched(kind, key.Namespace)
	}
	if err != nil {
		return err
	}
	return r.Client.Get(ctx, key, o, opts...)
}

// List implements client.Reader.
func (r watchedReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	kind, err := apiutil.GVKForObject(list, r.Scheme())
	if err == nil {
		kind.Kind = kind.Kind[:len(kind.Kind)-len("List")]
		err = r.kinds.whyNotWatched(kind, (&client.ListOptions{}).ApplyOptions(opts).Namespace)
	}
	if err != nil {
		return err
	}
	return r.Client.List(ctx, list, opts...)
}
