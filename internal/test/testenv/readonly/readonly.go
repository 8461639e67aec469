// Package readonly is as much of a Kubernetes API server as reading needs: discovery, get and list of given objects.
// Real clients talk to it, so that their errors are the real ones.
package readonly

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// API is an http.Handler. It must not be changed while it serves.
type API struct {
	// Objects are served in this order.
	Objects []unstructured.Unstructured
	// Refuses holds the requests that are forbidden, as "verb resource namespace".
	Refuses []string

	mutex sync.Mutex
	asked []string
}

// Asked returns the requests for objects, as "verb resource namespace/name".
func (a *API) Asked() []string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return slices.Clone(a.asked)
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group, version := "", ""
	switch {
	case len(parts) == 1 && parts[0] == "api":
		answer(w, metav1.APIVersions{Versions: []string{"v1"}})
		return
	case len(parts) == 1:
		answer(w, a.serveGroups())
		return
	case parts[0] == "api":
		version, parts = parts[1], parts[2:]
	case len(parts) > 2:
		group, version, parts = parts[1], parts[2], parts[3:]
	}
	if len(parts) == 0 {
		a.answerResources(w, schema.GroupVersion{Group: group, Version: version})
		return
	}
	namespace, name := "", ""
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 1 {
		name = parts[1]
	}
	a.answerObjects(
		w, r, schema.GroupVersionResource{Group: group, Version: version, Resource: parts[0]},
		client.ObjectKey{Namespace: namespace, Name: name},
	)
}

func (a *API) serveGroups() metav1.APIGroupList {
	var list metav1.APIGroupList
	for _, o := range a.Objects {
		gv := o.GroupVersionKind().GroupVersion()
		if gv.Group == "" || slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == gv.Group }) {
			continue
		}
		version := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		list.Groups = append(list.Groups, metav1.APIGroup{
			Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
		})
	}
	return list
}

func (a *API) answerResources(w http.ResponseWriter, gv schema.GroupVersion) {
	list := metav1.APIResourceList{GroupVersion: gv.String()}
	for _, o := range a.Objects {
		if o.GroupVersionKind().GroupVersion() != gv {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: resourceOf(o).Resource, Kind: o.GetKind(), Namespaced: o.GetNamespace() != "", Verbs: metav1.Verbs{"get", "list"},
		})
	}
	if len(list.APIResources) == 0 {
		answerError(w, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "", 0, true))
		return
	}
	answer(w, list)
}

func resourceOf(o unstructured.Unstructured) schema.GroupVersionResource {
	resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	return resource
}

func (a *API) answerObjects(w http.ResponseWriter, r *http.Request, resource schema.GroupVersionResource, key client.ObjectKey) {
	verb := "list"
	if key.Name != "" {
		verb = "get"
	}
	a.mutex.Lock()
	a.asked = append(a.asked, strings.TrimSpace(verb+" "+resource.Resource+" "+strings.Trim(key.Namespace+"/"+key.Name, "/")))
	a.mutex.Unlock()
	if slices.Contains(a.Refuses, strings.TrimSpace(verb+" "+resource.Resource+" "+key.Namespace)) {
		answerError(w, apierrors.NewForbidden(resource.GroupResource(), key.Name, errors.New("no rule allows it")))
		return
	}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		answerError(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	list := unstructured.UnstructuredList{Object: map[string]any{"apiVersion": resource.GroupVersion().String(), "kind": "List"}}
	for _, o := range a.Objects {
		switch {
		case resourceOf(o) != resource || key.Namespace != "" && o.GetNamespace() != key.Namespace || !selector.Matches(labels.Set(o.GetLabels())):
		case verb == "list":
			list.Items = append(list.Items, o)
			list.SetKind(o.GetKind() + "List")
		case o.GetName() == key.Name:
			answer(w, o.Object)
			return
		}
	}
	if verb == "get" {
		answerError(w, apierrors.NewNotFound(resource.GroupResource(), key.Name))
		return
	}
	answer(w, list.UnstructuredContent())
}

func answerError(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.ErrStatus
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	send(w, int(status.Code), status)
}

func answer(w http.ResponseWriter, value any) {
	send(w, http.StatusOK, value)
}

func send(w http.ResponseWriter, status int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that is gone needs no answer
}
