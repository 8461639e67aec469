package base

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/gather/objects"
)

// Want names the objects to read of one kind.
type Want = objects.Want

// GroupByKind groups wants by kind: a kind is watched once, in all namespaces together.
func GroupByKind(wants []Want) [][]Want {
	var all [][]Want
	for _, w := range wants {
		i := slices.IndexFunc(all, func(same []Want) bool { return KindOf(same[0]) == KindOf(w) })
		if i < 0 {
			all = append(all, nil)
			i = len(all) - 1
		}
		all[i] = append(all[i], w)
	}
	return all
}

// KindOf returns the kind of a want.
func KindOf(w objects.Want) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: w.Group, Version: w.Version, Kind: w.Kind}
}

// CacheOptions keep in memory only the objects that are read: no Secret and no ConfigMap but those that are named. Nodes are
// kept as Go types, all other kinds unstructured. Of certificate signing requests the names are kept: each kubelet, and
// whoever has the bootstrap token, makes as many as it likes, with as many labels as an object holds.
func CacheOptions(wants []objects.Want) cache.Options {
	byKind := map[schema.GroupVersionKind]cache.ByObject{}
	for _, w := range wants {
		of := byKind[KindOf(w)]
		switch {
		case w.Namespace != "":
			if of.Namespaces == nil {
				of.Namespaces = map[string]cache.Config{}
			}
			of.Namespaces[w.Namespace] = cache.Config{FieldSelector: byName(w), LabelSelector: labelSelectorOf(w)}
		default:
			of.Field, of.Label = byName(w), labelSelectorOf(w)
		}
		byKind[KindOf(w)] = of
	}
	all := map[client.Object]cache.ByObject{MetadataOf(CertificateRequestKind()): {Transform: keepNameOnly}}
	for kind, of := range byKind {
		if kind == NodeKind() {
			of.Transform = keepWhatIsRead
			all[&corev1.Node{}] = of
			continue
		}
		all[NewObject(kind)] = of
	}
	return cache.Options{ByObject: all, DefaultTransform: cache.TransformStripManagedFields()}
}

func byName(w objects.Want) fields.Selector {
	if len(w.Names) != 1 {
		return nil
	}
	return fields.OneTermEqualSelector("metadata.name", w.Names[0])
}

func labelSelectorOf(w objects.Want) labels.Selector {
	if len(w.Labels) == 0 {
		return nil
	}
	return labels.SelectorFromSet(w.Labels)
}

// NewCache makes the cache of the operator. The library asks for the scope of each kind that has a selector, and
// refuses to work where the cluster does not serve one of them: so the wants have that scope as well. Its informers
// note in refused what they may not list or watch.
func NewCache(wants []objects.Want, refused *RefusedWatches) func(*rest.Config, cache.Options) (cache.Cache, error) {
	return func(config *rest.Config, o cache.Options) (cache.Cache, error) {
		scopes := &knownScopes{RESTMapper: o.Mapper, wants: wants}
		o.Mapper, o.NewInformer = scopes, newInformers(refused)
		c, err := cache.New(config, o)
		scopes.made.Store(true)
		return c, err
	}
}

// newInformers returns what makes the informers of the cache: that of certificate signing requests lists them in parts.
func newInformers(refused *RefusedWatches) informerFunc {
	return func(from toolscache.ListerWatcher, o runtime.Object, resync time.Duration,
		indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		if _, ok := o.(*metav1.PartialObjectMetadata); ok &&
			o.GetObjectKind().GroupVersionKind() == CertificateRequestKind() {
			return refused.newInformer(namesInParts{toolscache.ToListerWatcherWithContext(from)}, o, resync, indexers)
		}
		return refused.NewInformer(from, o, resync, indexers)
	}
}

// informerFunc is cache.Options.NewInformer.
type informerFunc = func(toolscache.ListerWatcher, runtime.Object, time.Duration,
	toolscache.Indexers) toolscache.SharedIndexInformer

// knownScopes is a mapper that knows the scope of all wants, until the cache is made.
type knownScopes struct {
	meta.RESTMapper
	wants []objects.Want
	made  atomic.Bool
	// core are the mappings of kinds that every API server serves in the same way. A cache asks for that of a kind with
	// each list.
	core sync.Map
}

// RESTMapping implements meta.RESTMapper.
func (s *knownScopes) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind.Group != corev1.GroupName || len(versions) != 1 {
		return s.findMapping(kind, versions...)
	}
	key := kind.WithVersion(versions[0])
	if known, ok := s.core.Load(key); ok {
		return known.(*meta.RESTMapping), nil //nolint:forcetypeassert // nothing else is stored
	}
	mapping, err := s.findMapping(kind, versions...)
	if err == nil {
		s.core.Store(key, mapping)
	}
	return mapping, err
}

// findMapping asks the mapper, which may ask the API server.
func (s *knownScopes) findMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := s.RESTMapper.RESTMapping(kind, versions...)
	i := slices.IndexFunc(s.wants, func(w objects.Want) bool { return KindOf(w).GroupKind() == kind })
	if !meta.IsNoMatchError(err) || s.made.Load() || i < 0 {
		return mapping, err
	}
	w, scope := s.wants[i], meta.RESTScopeRoot
	if w.Namespace != "" {
		scope = meta.RESTScopeNamespace
	}
	resource, _ := meta.UnsafeGuessKindToResource(KindOf(w))
	return &meta.RESTMapping{Resource: resource, GroupVersionKind: KindOf(w), Scope: scope}, nil
}
