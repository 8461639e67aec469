package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"wmco/controller/gather/objects"
)

// kindsPeriod is how often the cluster is asked for kinds that it did not serve, or refused.
const kindsPeriod = 30 * time.Second

// kinds are those that cannot be watched now: the cluster does not serve them, or refuses to list them. What needs one begins when it can be
// watched. A cache would wait for it for ever, and everything that reads the cache with it.
//
//	begin --served, may be listed--> what watches it
//	   '----otherwise--> missing: reads return why --every kindsPeriod, when it can be--> what watches it
type kinds struct {
	mapper meta.RESTMapper
	live   client.Reader
	log    logr.Logger

	mu      sync.Mutex
	missing map[schema.GroupVersionKind]*missingKind
}

// missingKind is a kind that cannot be watched.
type missingKind struct {
	// errs are why, by namespace; empty for all.
	errs  map[string]error
	wants []objects.Want
	// begin is called when all of it can be watched.
	begin []func() error
}

func newKinds(mapper meta.RESTMapper, live client.Reader, log logr.Logger) *kinds {
	return &kinds{mapper: mapper, live: live, log: log, missing: map[schema.GroupVersionKind]*missingKind{}}
}

// begin calls do when all objects that are wanted can be watched: now, or later. They are of one kind.
func (k *kinds) begin(ctx context.Context, wants []objects.Want, do func() error) error {
	errs, err := k.check(ctx, wants)
	if err != nil {
		return err
	}
	if len(errs) == 0 {
		return do()
	}
	kind := kindOf(wants[0])
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.missing[kind]
	if m == nil {
		m = &missingKind{}
		k.missing[kind] = m
		k.log.Info("a kind cannot be watched; it is looked for again", "kind", kind.Kind, "group", kind.Group, "every", kindsPeriod, "error", firstOf(errs))
	}
	m.errs, m.wants, m.begin = errs, append(m.wants, wants...), append(m.begin, do)
	return nil
}

func firstOf(errs map[string]error) error {
	return errs[slices.Min(slices.Collect(maps.Keys(errs)))]
}

// check returns why objects cannot be watched, by namespace. The error is of an API server that gives no answer.
func (k *kinds) check(ctx context.Context, wants []objects.Want) (map[string]error, error) {
	errs := map[string]error{}
	for _, w := range wants {
		switch err := k.list(ctx, w); {
		case meta.IsNoMatchError(err):
			errs[w.Namespace] = err
		case apierrors.IsNotFound(err): // a mapper that has not noticed that the kind was removed
			errs[w.Namespace] = &meta.NoKindMatchError{GroupKind: kindOf(w).GroupKind(), SearchedVersions: []string{w.Version}}
		case apierrors.IsForbidden(err):
			errs[w.Namespace] = &objects.WatchError{Err: err}
		case err != nil:
			return nil, fmt.Errorf("looking for kind %s of %s: %w", w.Kind, w.Group, err)
		}
	}
	return errs, nil
}

// list asks for one object, as a cache would ask for all.
func (k *kinds) list(ctx context.Context, w objects.Want) error {
	kind := kindOf(w)
	if _, err := k.mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(w.Kind + "List"))
	return k.live.List(ctx, list, &client.ListOptions{Namespace: w.Namespace, FieldSelector: byName(w), LabelSelector: labeled(w), Limit: 1})
}

// Start implements manager.Runnable.
func (k *kinds) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(kindsPeriod):
		}
		if err := k.look(ctx); err != nil {
			return err
		}
	}
}

// look begins what can be watched now.
func (k *kinds) look(ctx context.Context) error {
	k.mu.Lock()
	missing := maps.Clone(k.missing)
	k.mu.Unlock()
	for kind, m := range missing {
		errs, err := k.check(ctx, m.wants)
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
	}
	return nil
}

// why returns why objects of a kind in a namespace cannot be read; nil if they can.
func (k *kinds) why(kind schema.GroupVersionKind, namespace string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.missing[kind]
	if m == nil {
		return nil
	}
	if err, ok := m.errs[""]; ok {
		return err
	}
	return m.errs[namespace]
}

// reading returns a client whose reads of kinds that cannot be watched return why, instead of waiting.
func (k *kinds) reading(c client.Client) client.Client { return watchedReader{c, k} }

type watchedReader struct {
	client.Client
	kinds *kinds
}

// Get implements client.Reader.
func (r watchedReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(o, r.Scheme())
	if err == nil {
		err = r.kinds.why(kind, key.Namespace)
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
		err = r.kinds.why(kind, (&client.ListOptions{}).ApplyOptions(opts).Namespace)
	}
	if err != nil {
		return err
	}
	return r.Client.List(ctx, list, opts...)
}

// newCache makes the cache of the operator. The library asks for the scope of each kind that has a selector, and refuses to work where the
// cluster does not serve one of them: what is wanted says that scope as well.
func newCache(wants []objects.Want) func(*rest.Config, cache.Options) (cache.Cache, error) {
	return func(config *rest.Config, o cache.Options) (cache.Cache, error) {
		scopes := &knownScopes{RESTMapper: o.Mapper, wants: wants}
		o.Mapper, o.NewInformer = scopes, newInformer
		c, err := cache.New(config, o)
		scopes.made.Store(true)
		return c, err
	}
}

// knownScopes is a mapper that knows the scope of what is wanted, until the cache is made.
type knownScopes struct {
	meta.RESTMapper
	wants []objects.Want
	made  atomic.Bool
}

// RESTMapping implements meta.RESTMapper.
func (s *knownScopes) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := s.RESTMapper.RESTMapping(kind, versions...)
	i := slices.IndexFunc(s.wants, func(w objects.Want) bool { return kindOf(w).GroupKind() == kind })
	if !meta.IsNoMatchError(err) || s.made.Load() || i < 0 {
		return mapping, err
	}
	w, scope := s.wants[i], meta.RESTScopeRoot
	if w.Namespace != "" {
		scope = meta.RESTScopeNamespace
	}
	resource, _ := meta.UnsafeGuessKindToResource(kindOf(w))
	return &meta.RESTMapping{Resource: resource, GroupVersionKind: kindOf(w), Scope: scope}, nil
}
