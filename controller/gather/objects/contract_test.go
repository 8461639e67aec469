package objects_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"wmco/controller/gather/objects"
)

// contractWorld returns the objects that every reader of the contract has.
func contractWorld() []map[string]any {
	return []map[string]any{
		object("v1", "Node", "", "win-b", map[string]any{"kubernetes.io/os": "windows", "zone": "b"}),
		object("v1", "Node", "", "win-a", map[string]any{"kubernetes.io/os": "windows", "zone": "a"}),
		object("v1", "Node", "", "linux", map[string]any{"kubernetes.io/os": "linux"}),
		object("v1", "ConfigMap", "b", "one", nil),
		object("v1", "ConfigMap", "a", "one", nil),
		object("v1", "ConfigMap", "a", "two", nil),
		object("v1", "ConfigMap", "a", "two-more", nil),
		object("config.openshift.io/v1", "Proxy", "", "cluster", nil),
		object("example.com/v1", "Proxy", "", "cluster", nil),
		object("apps/v1", "Deployment", "a", "one", nil),
	}
}

func object(apiVersion, kind, namespace, name string, labels map[string]any) map[string]any {
	metadata := map[string]any{
		"name": name, "resourceVersion": "999", "generation": int64(1),
		"managedFields": []any{map[string]any{"manager": "somebody"}},
	}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	if labels != nil {
		metadata["labels"] = labels
	}
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
}

// TestContract checks the behaviour that all readers share.
func TestContract(t *testing.T) {
	for name, newReader := range map[string]func(*testing.T) objects.Reader{
		"paths": pathsOfWorld, "cluster": clusterOfWorld,
	} {
		t.Run(name, func(t *testing.T) { testContract(t, newReader(t)) })
	}
}

func testContract(t *testing.T, r objects.Reader) {
	config := func(namespace string, names ...string) objects.Want {
		return objects.Want{Version: "v1", Kind: "ConfigMap", Namespace: namespace, Names: names}
	}
	for _, c := range []struct {
		name  string
		wants []objects.Want
		want  []string
	}{
		{"nothing is wanted", nil, nil},
		{"all of a kind, by name", []objects.Want{{Version: "v1", Kind: "Node"}}, []string{"v1 Node/linux", "v1 Node/win-a", "v1 Node/win-b"}},
		{"one of a kind without namespaces", []objects.Want{{Version: "v1", Kind: "Node", Names: []string{"linux"}}}, []string{"v1 Node/linux"}},
		{"labels", []objects.Want{{Version: "v1", Kind: "Node", Labels: map[string]string{"kubernetes.io/os": "windows", "zone": "b"}}}, []string{"v1 Node/win-b"}},
		{"labels and a name", []objects.Want{{Version: "v1", Kind: "Node", Names: []string{"linux"}, Labels: map[string]string{"kubernetes.io/os": "windows"}}}, nil},
		{"an empty label is not a missing one", []objects.Want{{Version: "v1", Kind: "Node", Names: []string{"linux"}, Labels: map[string]string{"zone": ""}}}, nil},
		{"a namespace", []objects.Want{config("a")}, []string{"v1 ConfigMap/a/one", "v1 ConfigMap/a/two", "v1 ConfigMap/a/two-more"}},
		{"names in a namespace, some of which do not exist", []objects.Want{config("a", "two", "none", "one")}, []string{"v1 ConfigMap/a/one", "v1 ConfigMap/a/two"}},
		{"a name in any namespace", []objects.Want{config("", "one")}, []string{"v1 ConfigMap/a/one", "v1 ConfigMap/b/one"}},
		{"a prefix", []objects.Want{{Version: "v1", Kind: "ConfigMap", Namespace: "a", NamePrefix: "two"}}, []string{"v1 ConfigMap/a/two", "v1 ConfigMap/a/two-more"}},
		{"a prefix or a name", []objects.Want{{Version: "v1", Kind: "ConfigMap", Namespace: "a", NamePrefix: "two-", Names: []string{"one"}}}, []string{"v1 ConfigMap/a/one", "v1 ConfigMap/a/two-more"}},
		{"two wants for one object", []objects.Want{config("a", "one"), config("a")}, []string{"v1 ConfigMap/a/one", "v1 ConfigMap/a/two", "v1 ConfigMap/a/two-more"}},
		{"kinds of different groups, sorted by group first",
			[]objects.Want{{Group: "example.com", Version: "v1", Kind: "Proxy"}, {Group: "apps", Version: "v1", Kind: "Deployment"}, config("b")},
			[]string{"v1 ConfigMap/b/one", "apps/v1 Deployment/a/one", "example.com/v1 Proxy/cluster"}},
		{"what is optional may be missing", []objects.Want{{Group: "none.example.com", Version: "v1", Kind: "None", Optional: true}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			set, err := r.Read(context.Background(), c.wants)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range set.Objects {
				group := o.Group + "/"
				if o.Group == "" {
					group = ""
				}
				got = append(got, fmt.Sprintf("%s%s %s/%s", group, o.Version, o.Kind, joined(o.Namespace, o.Name)))
				checkJSON(t, o)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(set.Findings) > 0 {
				t.Errorf("the findings are %v", set.Findings)
			}
		})
	}
}

func joined(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// checkJSON compares the JSON of an object with that in contractWorld.
func checkJSON(t *testing.T, o objects.Object) {
	t.Helper()
	for _, w := range contractWorld() {
		u := unstructured.Unstructured{Object: w}
		if u.GetKind() != o.Kind || u.GetNamespace() != o.Namespace || u.GetName() != o.Name || u.GroupVersionKind().Group != o.Group {
			continue
		}
		unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
		want, err := json.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(o.JSON)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		return
	}
	t.Errorf("unexpected object %s", o.Ref)
}

func pathsOfWorld(t *testing.T) objects.Reader {
	files := map[string]string{}
	for i, w := range contractWorld() {
		text, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		files[fmt.Sprintf("%d.json", i)] = string(text)
	}
	return objects.NewPathsReader([]string{folder(t, files)}, nil)
}

func clusterOfWorld(t *testing.T) objects.Reader {
	return objects.NewClusterReader(clientOf(t, newAPI(contractWorld())))
}
