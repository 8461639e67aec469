package manifests

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadAndNamespaces(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml":     "# Only a comment.\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: one}\ndata: {from: a}\n",
		"b/b.yaml":   "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: {name: two}}\n- {apiVersion: v1, kind: Secret, metadata: {name: s, namespace: two}}\n- {apiVersion: v1, kind: Node, metadata: {name: x}}\n",
		"b/notes.md": "kind: Ignored",
	} {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	later := filepath.Join(t.TempDir(), "later.yaml")
	if err := os.WriteFile(later, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: one}\ndata: {from: later}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := Read(folder, later)
	if err != nil {
		t.Fatal(err)
	}
	namespaces, others := Namespaces(list)
	var got []string
	for _, m := range slices.Concat(namespaces, others) {
		got = append(got, m.GetKind()+" "+m.GetNamespace()+"/"+m.GetName())
	}
	want := []string{"Namespace /two", "Namespace /one", "Secret two/s", "Node /x", "ConfigMap one/a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if data := others[len(others)-1].Object["data"].(map[string]any); data["from"] != "later" {
		t.Errorf("the earlier manifest won: %v", data)
	}
	if _, err := Read(filepath.Join(folder, "absent.yaml")); err == nil {
		t.Error("a file that does not exist is no error")
	}
}
