package api

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// addStores adds what answers for a kind, by the name of the resource and its subresource.
func (s *Server) addStores(k Kind) error {
	main := strategy{s.scheme, names.SimpleNameGenerator, k, false, false}
	resource := schema.GroupResource{Group: k.Group, Resource: k.Resource}
	store := &registry.Store{
		NewFunc: func() runtime.Object { return s.newObject(k.GroupVersionKind) },
		NewListFunc: func() runtime.Object {
			return s.newObject(k.GroupVersion().WithKind(k.Kind + "List"))
		},
		DefaultQualifiedResource: resource, SingularQualifiedResource: schema.GroupResource{Group: k.Group, Resource: strings.ToLower(k.Kind)},
		CreateStrategy: main, UpdateStrategy: main, DeleteStrategy: main, ResetFieldsStrategy: main,
		TableConvertor: rest.NewDefaultTableConvertor(resource), ReturnDeletedObject: k.Kind == "Pod",
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{
		RESTOptions: generic.RESTOptions{
			StorageConfig:  &storagebackend.ConfigForResource{GroupResource: resource, Config: storagebackend.Config{Codec: s.storageCodec(k)}},
			ResourcePrefix: resource.String(), Decorator: s.decorate(),
			EnableGarbageCollection: true, DeleteCollectionWorkers: 1,
		},
		AttrFunc: main.attributes,
	}); err != nil {
		return err
	}
	if k.Kind == "Event" {
		s.addStore(k, "", store, events{store})
	} else {
		s.addStore(k, "", store, store)
	}
	if k.Status {
		status := *store
		of := main
		of.status = true
		status.UpdateStrategy, status.ResetFieldsStrategy = of, of
		s.addStore(k, "/status", &status, statusOf{&status})
	}
	if k.Kind == requestKind {
		approval := *store
		of := main
		of.approval = true
		approval.UpdateStrategy, approval.ResetFieldsStrategy = of, of
		s.addStore(k, "/approval", &approval, statusOf{&approval})
	}
	return nil
}

// addStore adds the requests of a resource or a part of it.
func (s *Server) addStore(k Kind, part string, store *registry.Store, requests rest.Storage) {
	gv := k.GroupVersion()
	if s.storage[gv] == nil {
		s.storage[gv] = map[string]rest.Storage{}
	}
	s.storage[gv][k.Resource+part] = requests
	s.stores[schema.GroupResource{Group: gv.Group, Resource: k.Resource + part}] = store
}

// newObject returns an empty object of a kind that the server has.
func (s *Server) newObject(gvk schema.GroupVersionKind) runtime.Object {
	o, err := emptyObjects{s.scheme}.New(gvk)
	if err != nil {
		panic(fmt.Sprintf("a kind that the server has: %v", err))
	}
	return o
}

// emptyObjects makes empty objects. Unstructured ones know their kind, as those of an API server do.
type emptyObjects struct{ *runtime.Scheme }

// New implements runtime.ObjectCreater.
func (c emptyObjects) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	o, err := c.Scheme.New(gvk)
	if _, ok := o.(runtime.Unstructured); ok {
		o.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return o, err
}

// decorate returns the storage of kinds in the etcd of the server.
func (s *Server) decorate() generic.StorageDecorator {
	return func(
		c *storagebackend.ConfigForResource, prefix string, _ func(runtime.Object) (string, error), newObject, newList func() runtime.Object,
		_ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		codec := c.Codec
		versioner := storage.APIObjectVersioner{}
		store, err := etcd3.New(s.client, nil, codec, newObject, newList, "/registry", prefix, c.GroupResource, identity.NewEncryptCheckTransformer(),
			etcd3.NewDefaultLeaseManagerConfig(), etcd3.NewDefaultDecoder(codec, versioner), versioner)
		return bookmarked{store}, func() {}, err
	}
}

// bookmarked gives watches bookmarks that ask for them, as the cache of an API server does.
type bookmarked struct{ storage.Interface }

// Watch implements storage.Interface.
func (b bookmarked) Watch(ctx context.Context, key string, o storage.ListOptions) (watch.Interface, error) {
	o.ProgressNotify = o.Predicate.AllowWatchBookmarks
	return b.Interface.Watch(ctx, key, o)
}

// storageCodec is how a kind is stored: protobuf where there is one, as API servers do.
func (s *Server) storageCodec(k Kind) runtime.Codec {
	media := runtime.ContentTypeProtobuf
	if k.Custom {
		media = runtime.ContentTypeJSON
	}
	info, _ := runtime.SerializerInfoForMediaType(s.codecs.SupportedMediaTypes(), media)
	return runtime.NewCodec(s.codecs.EncoderForVersion(info.Serializer, k.GroupVersion()), s.codecs.DecoderToVersion(s.codecs.UniversalDeserializer(), k.GroupVersion()))
}

// events are Events. Those of one object in one nanosecond have one name (k8s.io/client-go/tools/events): there are many of them only where time is virtual,
// and a later one gets another name.
type events struct{ *registry.Store }

// Create implements rest.Storage for new objects.
func (e events) Create(ctx context.Context, o runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	for {
		made, err := e.Store.Create(ctx, o.DeepCopyObject(), validate, options)
		if !apierrors.IsAlreadyExists(err) {
			return made, err
		}
		is := o.(metav1.Object)
		is.SetName(is.GetName() + "0")
	}
}

// statusOf has the requests of a status, or of an approval.
type statusOf struct{ store *registry.Store }

var _ rest.Patcher = statusOf{}

func (p statusOf) New() runtime.Object { return p.store.New() }
func (statusOf) Destroy()              {}

// Get implements rest.Getter, which a patch needs.
func (p statusOf) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	return p.store.Get(ctx, name, o)
}

// Update implements rest.Updater. It never creates.
//
//nolint:revive // as the interface says
func (p statusOf) Update(
	ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool,
	o *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return p.store.Update(ctx, name, info, create, update, false, o)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (p statusOf) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return p.store.GetResetFields()
}

// ConvertToTable implements rest.TableConvertor.
func (p statusOf) ConvertToTable(ctx context.Context, o, options runtime.Object) (*metav1.Table, error) {
	return p.store.ConvertToTable(ctx, o, options)
}
