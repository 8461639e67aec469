// Package api is an API server in memory: the handlers, the registry and the storage of k8s.io/apiserver over an etcd in
// memory, without sockets, TLS, webhooks and the admission of a cluster.
//
//	client --http.RoundTripper--> user, permissions --> handlers --> registry --> storage --> internal/test/world/etcd
//
// It runs in a bubble of testing/synctest: it waits for nothing outside. A request for a kind or a part that it does not
// have gets 404.
package api

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emicklei/go-restful/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/sets"
	apiversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"wmco/internal/test/world/etcd"
)

// Server is an API server.
type Server struct {
	Etcd *etcd.Memory

	scheme  *runtime.Scheme
	codecs  codecs
	client  *kubernetes.Client
	handler http.Handler
	kinds   []Kind
	// storage has the requests of each group, stores the objects of each resource and its parts.
	storage map[schema.GroupVersion]map[string]rest.Storage
	stores  map[schema.GroupResource]*registry.Store
	open    connections
	// authority and clients are what clients with certificates are known by, tokens the others.
	authority Authority
	clients   *x509.CertPool
	tokens    *tokens
	version   atomic.Pointer[string]
}

// SetVersion has the server say that it is of another release of Kubernetes, such as "v1.37.2". What it does is the same.
func (s *Server) SetVersion(git string) { s.version.Store(&git) }

// New returns a server of some kinds that answers until the context ends. Its objects of RBAC decide about requests.
func New(ctx context.Context, kinds []Kind) (*Server, error) {
	scheme, err := newScheme(kinds)
	if err != nil {
		return nil, err
	}
	s := &Server{
		Etcd: etcd.New(), scheme: scheme, codecs: codecs{serializer.NewCodecFactory(scheme), scheme}, kinds: kinds,
		storage: map[schema.GroupVersion]map[string]rest.Storage{}, stores: map[schema.GroupResource]*registry.Store{},
		open: connections{all: map[*body]bool{}},
	}
	s.SetVersion("v1.36.5")
	s.client = s.Etcd.Client(ctx)
	go s.compact(ctx)
	for _, k := range kinds {
		if err := s.addStores(k); err != nil {
			return nil, fmt.Errorf("%s: %w", k.Kind, err)
		}
	}
	s.storage[corev1.SchemeGroupVersion]["pods/eviction"] = evictions{
		pods: s.stores[schema.GroupResource{Resource: "pods"}], podStatus: s.stores[schema.GroupResource{Resource: "pods/status"}],
		budgets:      s.stores[schema.GroupResource{Group: policyv1.GroupName, Resource: "poddisruptionbudgets"}],
		budgetStatus: s.stores[schema.GroupResource{Group: policyv1.GroupName, Resource: "poddisruptionbudgets/status"}],
	}
	s.tokens = &tokens{accounts: s.stores[schema.GroupResource{Resource: "serviceaccounts"}], now: time.Now, issued: map[string]issued{}}
	s.storage[corev1.SchemeGroupVersion]["serviceaccounts/token"] = s.tokens
	may := &permissions{server: s, stores: map[string]*registry.Store{}}
	for _, resource := range []string{"roles", "clusterroles", "rolebindings", "clusterrolebindings"} {
		may.stores[resource] = s.stores[schema.GroupResource{Group: rbacGroup, Resource: resource}]
	}
	container := restful.NewContainer()
	container.Router(restful.CurlyRouter{})
	for gv, storage := range s.storage {
		if err := s.install(container, gv, storage, may); err != nil {
			return nil, fmt.Errorf("%s: %w", gv, err)
		}
	}
	s.handler = s.chain(s.discovery(container), may)
	return s, nil
}

// compactEvery is the time between two compactions (kube-apiserver, --etcd-compaction-interval).
const compactEvery = 5 * time.Minute

// compact forgets revisions before the last compaction: a watch that continues from there gets 410.
func (s *Server) compact(ctx context.Context) {
	before := int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(compactEvery):
		}
		s.Etcd.Compact(before)
		before = s.Etcd.Revision()
	}
}

// install adds the requests of a group.
func (s *Server) install(c *restful.Container, gv schema.GroupVersion, storage map[string]rest.Storage, a authorizer.Authorizer) error {
	root := "/apis"
	if gv.Group == "" {
		root = "/api"
	}
	convert := convertor{s.scheme}
	types, err := s.typeConverter(gv)
	if err != nil {
		return err
	}
	version := &endpoints.APIGroupVersion{
		Storage: storage, Root: root, GroupVersion: gv, AllServedVersionsByResource: map[string][]string{},
		OptionsExternalVersion: &schema.GroupVersion{Version: "v1"}, Serializer: s.codecs, ParameterCodec: runtime.NewParameterCodec(s.scheme),
		Typer: s.scheme, Creater: emptyObjects{s.scheme}, //nolint:misspell // as the library says
		Convertor: convert, ConvertabilityChecker: s.scheme, Defaulter: s.scheme,
		Namer: runtime.Namer(meta.NewAccessor()), UnsafeConvertor: convert, TypeConverter: types,
		EquivalentResourceRegistry: runtime.NewEquivalentResourceRegistry(), Authorizer: a, Admit: restrictions{a}, MaxRequestBodyBytes: 3 << 20, MinRequestTimeout: 30 * time.Minute,
	}
	_, _, err = version.InstallREST(c)
	return err
}

// typeConverter knows which lists are sets and maps, for server-side apply. Of custom kinds without a definition nothing
// is known, as of fields that a definition does not have: a list is one value.
func (s *Server) typeConverter(gv schema.GroupVersion) (managedfields.TypeConverter, error) {
	for _, k := range s.kinds {
		switch {
		case k.GroupVersion() != gv || !k.Custom:
		case k.Schema == nil:
			return managedfields.NewDeducedTypeConverter(), nil
		default:
			return definedTypes(k)
		}
	}
	return builtinTypes(), nil
}

// definedTypes is for the one kind of a group that has a definition.
func definedTypes(k Kind) (managedfields.TypeConverter, error) {
	text, err := json.Marshal(k.Schema)
	if err != nil {
		return nil, err
	}
	var model spec.Schema
	if err := json.Unmarshal(text, &model); err != nil {
		return nil, err
	}
	model.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}})
	return managedfields.NewTypeConverter(map[string]*spec.Schema{k.Kind: &model}, false)
}

// builtinTypes is read once: it costs more than the rest of a server.
//
//nolint:gochecknoglobals // as said
var builtinTypes = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })

// Resolver says of requests what they ask for.
func Resolver() *request.RequestInfoFactory {
	return &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
}

// chain adds what every request passes before the handlers.
func (s *Server) chain(next http.Handler, a authorizer.Authorizer) http.Handler {
	next = s.withAuthentication(filters.WithAuthorization(next, a, s.codecs))
	next = filters.WithRequestInfo(next, Resolver())
	next = filters.WithRequestReceivedTimestamp(next)
	return filters.WithAuditInit(next)
}

// discovery answers which groups there are. The resources of each are answered by its own handler.
func (s *Server) discovery(next http.Handler) http.Handler {
	groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	seen := map[schema.GroupVersion]bool{}
	for _, k := range s.kinds {
		gv := k.GroupVersion()
		if gv.Group == "" || seen[gv] {
			continue
		}
		seen[gv] = true
		v := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		if i := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == gv.Group }); i >= 0 {
			groups.Groups[i].Versions = append(groups.Groups[i].Versions, v)
			continue
		}
		groups.Groups = append(groups.Groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
	}
	versions := &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := func(o runtime.Object) {
			responsewriters.WriteObjectNegotiated(s.codecs, negotiation.DefaultEndpointRestrictions, schema.GroupVersion{Version: "v1"}, w, r, http.StatusOK, o, false)
		}
		switch strings.TrimSuffix(r.URL.Path, "/") {
		case "/api":
			answer(versions)
		case "/apis":
			answer(groups.DeepCopy())
		case "/version":
			w.Header().Set("Content-Type", "application/json")
			v := apiversion.MustParseSemantic(*s.version.Load())
			_, _ = fmt.Fprintf(w, `{"major":"%d","minor":"%d","gitVersion":"v%s"}`+"\n", v.Major(), v.Minor(), v)
		default:
			info, ok := request.RequestInfoFrom(r.Context())
			if ok && strings.HasPrefix(r.Header.Get("Content-Type"), string(types.StrategicMergePatchType)) && s.isCustom(info.APIGroup) {
				err := negotiation.NewUnsupportedMediaTypeError([]string{string(types.MergePatchType), string(types.JSONPatchType), string(types.ApplyYAMLPatchType)})
				responsewriters.ErrorNegotiated(err, s.codecs, schema.GroupVersion{Version: "v1"}, w, r)
				return
			}
			next.ServeHTTP(w, r)
		}
	})
}

// isCustom reports whether a group is one of CustomResourceDefinitions, which have no strategic merge patches.
func (s *Server) isCustom(group string) bool {
	return slices.ContainsFunc(s.kinds, func(k Kind) bool { return k.Group == group && k.Custom })
}
