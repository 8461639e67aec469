package warnings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/desired"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/testenv/manifests"
	"wmco/render"
)

// cluster is the example cluster with so many Windows nodes and some changes, as a cache has it: lists are not copied.
func cluster(t testing.TB, nodes int, changes ...func(*unstructured.Unstructured)) client.Client {
	t.Helper()
	golden := filepath.Join("..", "..", "..", "golden")
	list, err := manifests.Read(filepath.Join(golden, "clusters", "common"), filepath.Join(golden, "clusters", "none"))
	if err != nil {
		t.Fatal(err)
	}
	facts, err := gather.FactsFile(filepath.Join(golden, "facts", "none.json"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[schema.GroupVersionKind][]unstructured.Unstructured{}
	for _, m := range list {
		for _, change := range changes {
			change(m.Unstructured)
		}
		if m.GetKind() == "Node" && m.GetLabels()[corev1.LabelOSStable] == "windows" {
			for i := range nodes {
				all[m.GroupVersionKind()] = append(all[m.GroupVersionKind()], like(t, m.Unstructured, facts[0], i))
			}
			continue
		}
		all[m.GroupVersionKind()] = append(all[m.GroupVersionKind()], *m.Unstructured)
	}
	read := interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			for _, u := range all[o.GetObjectKind().GroupVersionKind()] {
				if client.ObjectKeyFromObject(&u) == key {
					o.(*unstructured.Unstructured).Object = u.Object //nolint:forcetypeassert // all are
					return nil
				}
			}
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			u := list.(*unstructured.UnstructuredList) //nolint:forcetypeassert // all are
			kind := u.GroupVersionKind()
			kind.Kind = strings.TrimSuffix(kind.Kind, "List")
			o := (&client.ListOptions{}).ApplyOptions(options)
			u.Items = slices.DeleteFunc(slices.Clone(all[kind]), func(u unstructured.Unstructured) bool {
				return o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(u.GetLabels()))
			})
			return nil
		},
	}
	return scoped{interceptor.NewClient(fake.NewFakeClient(), read)}
}

// scoped knows which kinds have a namespace.
type scoped struct{ client.Client }

// IsObjectNamespaced implements client.Client.
func (scoped) IsObjectNamespaced(o runtime.Object) (bool, error) {
	kind := o.GetObjectKind().GroupVersionKind()
	return kind.Group == "" && kind.Kind != "Node" || kind.Kind == "Machine" || kind.Kind == "Deployment", nil
}

func like(t testing.TB, of *unstructured.Unstructured, facts bundle.Facts, i int) unstructured.Unstructured {
	t.Helper()
	u := of.DeepCopy()
	name, address := fmt.Sprintf("win-%04d", i), fmt.Sprintf("10.1.%d.%d", i/250, i%250+1)
	u.SetName(name)
	subnet := fmt.Sprintf("10.%d.%d.0/24", 132+i/256, i%256)
	facts = simulation.FactsAt(facts, strings.ToUpper(name), address, subnet)
	text, err := published.Report{State: published.StateApplied, Facts: &facts}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[published.ReportAnnotation], annotations["k8s.ovn.org/hybrid-overlay-node-subnet"] = text, subnet
	u.SetAnnotations(annotations)
	err = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"type": "InternalIP", "address": address}, map[string]any{"type": "Hostname", "address": name}}, "status", "addresses")
	if err != nil {
		t.Fatal(err)
	}
	return *u
}

func warner(c client.Client) *Warner {
	return &Warner{
		Read: func(ctx context.Context, from client.Reader) (*desired.Hosts, error) {
			return desired.ReadHosts(ctx, desired.Source{
				Objects: objects.NewClusterReader(from), Key: bundle.Key("a key of 32 bytes for these tests!"), WithoutCredentials: true,
				Gather: gather.Options{Complete: true, Environment: map[string]string{"HTTP_PROXY": proxyURL(password)}},
			})
		},
		Cache: c, Wants: gather.WantedObjects(gather.OperatorNamespace), Log: logr.Discard(),
	}
}

// request is what an API server asks about an object. Without one it is a deletion.
func request(t testing.TB, kind metav1.GroupVersionKind, namespace, name string, object any) admission.Request {
	t.Helper()
	r := admissionv1.AdmissionRequest{Kind: kind, Namespace: namespace, Name: name, Operation: admissionv1.Delete}
	if object != nil {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		r.Operation, r.Object.Raw = admissionv1.Create, text
	}
	return admission.Request{AdmissionRequest: r}
}

func mirror(t testing.TB, source string) admission.Request {
	t.Helper()
	kind := metav1.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ImageDigestMirrorSet"}
	return request(t, kind, "", "new", map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": kind.Kind, "metadata": map[string]any{"name": "new"},
		"spec": map[string]any{"imageDigestMirrors": []any{map[string]any{"source": source, "mirrors": []any{"mirror.example.com"}}}},
	})
}

// TestAThousandNodes are counted from a sample. Whether that is in time for the API server depends on the computer: the log has how long it takes.
func TestAThousandNodes(t *testing.T) {
	for _, nodes := range []int{1, mostNodes, 1000} {
		w := warner(cluster(t, nodes))
		begun := time.Now()
		got := w.Handle(t.Context(), mirror(t, "quay.io"))
		t.Logf("%d nodes: %s", nodes, time.Since(begun).Round(time.Millisecond))
		want := fmt.Sprintf("%d Windows nodes change without a restart", nodes)
		if nodes == 1 {
			want = "1 Windows node changes without a restart"
		}
		if diff := cmp.Diff([]string{want}, got.Warnings); !got.Allowed || diff != "" {
			t.Errorf("%d nodes: allowed %t (-want +got):\n%s", nodes, got.Allowed, diff)
		}
	}
}

// TestOnlyWantedObjectsAreRead: nothing is read or rendered for an object that no node depends on.
func TestOnlyWantedObjectsAreRead(t *testing.T) {
	config := func(kind string) metav1.GroupVersionKind {
		return metav1.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: kind}
	}
	core := func(kind string) metav1.GroupVersionKind { return metav1.GroupVersionKind{Version: "v1", Kind: kind} }
	c := cluster(t, 1)
	for name, tt := range map[string]struct {
		kind            metav1.GroupVersionKind
		namespace, name string
		want            bool
	}{
		"a mirror set, by any name":           {config("ImageDigestMirrorSet"), "", "any", true},
		"the settings":                        {core("ConfigMap"), gather.OperatorNamespace, "windows-machine-config", true},
		"the image settings of the cluster":   {config("Image"), "", "cluster", true},
		"others of another name":              {config("Image"), "", "other", false},
		"the proxy, which may have passwords": {config("Proxy"), "", "cluster", false},
		"the pull secret":                     {core("Secret"), render.PullSecretNamespace, render.PullSecretName, false},
		"an input that no API server asks of": {config("Infrastructure"), "", "cluster", false},
		"a kind that no node depends on":      {core("Pod"), "a", "b", false},
		"the kind of another group":           {metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "ImageDigestMirrorSet"}, "", "any", false},
		"the kind in another version":         {metav1.GroupVersionKind{Group: "config.openshift.io", Version: "v2", Kind: "ImageDigestMirrorSet"}, "", "any", false},
		"another Secret of the namespace":     {core("Secret"), "openshift-config", "other", false},
		"a ConfigMap of that name elsewhere":  {core("ConfigMap"), "default", "windows-machine-config", false},
	} {
		w := warner(c)
		read := false
		w.Read = func(context.Context, client.Reader) (*desired.Hosts, error) {
			read = true
			return nil, errors.New("as far as it goes here")
		}
		w.Handle(t.Context(), request(t, tt.kind, tt.namespace, tt.name, nil))
		if read != tt.want {
			t.Errorf("%s: read %t", name, read)
		}
	}
}

// TestAProposedObjectIsInItsNamespace alone, also in lists.
func TestAProposedObjectIsInItsNamespace(t *testing.T) {
	u := object(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, gather.OperatorNamespace, "new", nil)
	for namespace, want := range map[string]bool{"": true, gather.OperatorNamespace: true, "default": false} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"})
		if err := with(cluster(t, 1), u).List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(list.Items, func(u unstructured.Unstructured) bool { return u.GetName() == "new" }); got != want {
			t.Errorf("a list of namespace %q has it: %t", namespace, got)
		}
	}
}

// TestLines are few and short: an API server cuts others.
func TestLines(t *testing.T) {
	c := cluster(t, 1)
	w := warner(c)
	req := request(t, metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, gather.OperatorNamespace, "windows-machine-config", map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": gather.OperatorNamespace, "name": "windows-machine-config"},
		"data": map[string]any{"config.yaml": "a: 1\nb: 2\nc: 3\nd: 4\ne: 5\n" + strings.Repeat("x", 400) + ": 1\n"},
	})
	got := w.Handle(t.Context(), req).Warnings
	if len(got) != mostLines || got[0] != "the inputs of Windows nodes would be refused, and all nodes keep their bundles" {
		t.Errorf("%q", got)
	}
	for _, line := range got {
		if len(line) > mostLength || strings.Contains(line, "\n") {
			t.Errorf("a line of %d bytes: %q", len(line), line)
		}
	}
}

// TestWhatIsSaid of each kind of change.
func TestWhatIsSaid(t *testing.T) {
	quay := object(openshift("config", "v1", "ImageDigestMirrorSet"), "", "quay", map[string]any{"spec": map[string]any{"imageDigestMirrors": []any{map[string]any{"source": "quay.io", "mirrors": []any{"mirror.example.com"}}}}})
	docker := object(openshift("config", "v1", "ImageDigestMirrorSet"), "", "quay", map[string]any{"spec": map[string]any{"imageDigestMirrors": []any{map[string]any{"source": "docker.io", "mirrors": []any{"mirror.example.com"}}}}})
	proxies, others := holders(password), holders(guess)
	proxy, pullSecret := 1, 3
	const changes = "1 Windows node changes without a restart"
	for name, tt := range map[string]struct {
		before, after *unstructured.Unstructured
		want          []string
	}{
		"a mirror set is created":          {nil, quay, []string{changes}},
		"it is changed":                    {quay, docker, []string{changes}},
		"it is applied again":              {quay, quay, nil},
		"it is deleted":                    {quay, nil, []string{changes}},
		"the spec of the proxy is changed": {proxies[proxy], others[proxy], []string{proxyFollows}},
		"the same spec is applied":         {proxies[proxy], proxies[proxy+1], nil},
		"the pull secret is changed":       {proxies[pullSecret], others[pullSecret], []string{pullSecretFollows}},
		"it is labelled":                   {proxies[pullSecret], labelled(proxies[pullSecret]), nil},
		"it is removed":                    {proxies[pullSecret], nil, []string{inputsRefused}},
		"another Secret of the inputs":     {proxies[pullSecret+1], others[pullSecret+1], nil},
	} {
		of := tt.after
		if of == nil {
			of = tt.before
		}
		kind := of.GroupVersionKind()
		r := request(t, metav1.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}, of.GetNamespace(), of.GetName(), nil)
		if tt.before != nil {
			r.OldObject.Raw, r.Operation = marshal(t, tt.before), admissionv1.Delete
		}
		if tt.after != nil {
			r.Object.Raw, r.Operation = marshal(t, tt.after), admissionv1.Update
		}
		for _, nodes := range []int{1, 0} {
			got := warner(cluster(t, nodes)).Handle(t.Context(), r).Warnings
			if nodes == 0 {
				tt.want = nil
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s, with %d nodes (-want +got):\n%s", name, nodes, diff)
			}
		}
	}
}

func labelled(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	u.SetLabels(map[string]string{"a": "b"})
	return u
}

func marshal(t testing.TB, u *unstructured.Unstructured) []byte {
	t.Helper()
	text, err := json.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
