package objects_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/controller/gather/objects"
)

// mirrorWants returns wants of the forms that the cluster's have: unique kinds, kinds of several groups, names.
func mirrorWants() []objects.Want {
	return []objects.Want{
		{Group: "config.openshift.io", Version: "v1", Kind: "ImageDigestMirrorSet", Unique: true},
		{Group: "config.openshift.io", Version: "v1", Kind: "Image", Names: []string{"cluster"}},
		{Group: "config.openshift.io", Version: "v1", Kind: "Network", Names: []string{"cluster"}},
		{Group: "operator.openshift.io", Version: "v1", Kind: "Network", Names: []string{"cluster"}},
		{Group: "machine.openshift.io", Version: "v1beta1", Kind: "Machine"},
		{Version: "v1", Kind: "ConfigMap", Namespace: "wmco", Names: []string{"windows-instances"}},
		{Version: "v1", Kind: "Node"},
	}
}

// TestSkippedDocuments reads documents that seem to be meant as wanted ones, as a named file and in a folder.
func TestSkippedDocuments(t *testing.T) {
	const set = "apiVersion: config.openshift.io/v1\nkind: ImageDigestMirrorSet\nmetadata:\n  name: a\n"
	list := func(items string) string { return "apiVersion: v1\nkind: List\nitems:\n" + items }
	jsonOf := func(apiVersion, kind, name string) string {
		return fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "metadata": {"name": %q}}`, apiVersion, kind, name)
	}
	const caseOf, groupOf, noKind = "warning DocumentSkipped at f.yaml:%d %s/a kind", "warning DocumentSkipped at f.yaml:%d %s apiVersion", "warning DocumentSkipped at f.yaml:%d %s kind"
	const notObject = "warning DocumentSkipped at f.yaml:%d"
	one := func(format string, args ...any) []string { return []string{fmt.Sprintf(format, args...)} }
	const wrongCase = "imagedigestmirrorset"
	for _, c := range []struct {
		name, content string
		// named is what the file gives if it is named, folder what it gives in a folder, if that differs.
		named, folder []string
	}{
		{"a kind in lower case", pod + "---\n" + strings.Replace(set, "ImageDigestMirrorSet", wrongCase, 1), one(caseOf, 6, wrongCase), nil},
		{"a kind in lower case, in JSON", jsonOf("config.openshift.io/v1", wrongCase, "a"), one(caseOf, 1, wrongCase), nil},
		{"a kind in lower case, in a list", list("- " + strings.ReplaceAll(strings.Replace(set, "ImageDigestMirrorSet", wrongCase, 1), "\n", "\n  ")), one(caseOf, 4, wrongCase), nil},
		{"a kind in lower case, in a JSON list", "{\"kind\": \"List\", \"items\": [\n" + jsonOf("config.openshift.io/v1", wrongCase, "a") + "]}", one(caseOf, 2, wrongCase), nil},
		{"a kind in lower case, in flow style", "{apiVersion: config.openshift.io/v1, kind: imagedigestmirrorset, metadata: {name: a}}", one(caseOf, 1, wrongCase), nil},
		{"a kind in lower case without apiVersion", "kind: imagedigestmirrorset\nmetadata:\n  name: a\n", one(caseOf, 1, wrongCase), nil},
		{"a kind in lower case of another name", "apiVersion: config.openshift.io/v1\nkind: image\nmetadata:\n  name: other\n", []string{}, nil},
		{"a kind in lower case of another namespace", "apiVersion: v1\nkind: configmap\nmetadata:\n  name: windows-instances\n  namespace: other\n", []string{}, nil},
		{"a unique kind in another group", strings.Replace(set, "config.", "operator.", 1), one(groupOf, 1, "ImageDigestMirrorSet/a"), nil},
		{"a unique kind in an unknown group", strings.Replace(set, "config.openshift.io/v1", "v1", 1), one(groupOf, 1, "ImageDigestMirrorSet/a"), nil},
		{"a needed name in another group that is read", jsonOf("operator.openshift.io/v1", "Image", "cluster"), one(groupOf, 1, "Image/cluster"), nil},
		{"kinds that other groups have too", strings.Join([]string{
			jsonOf("image.openshift.io/v1", "Image", "sha256:0"), jsonOf("image.openshift.io/v1", "Image", "cluster"), jsonOf("cluster.x-k8s.io/v1beta1", "Machine", "a"),
			jsonOf("config.openshift.io/v1", "Node", "cluster"), jsonOf("config.openshift.io/v1", "Image", "other"), jsonOf("other.example.com/v1", "Network", "cluster"),
		}, "\n"), []string{}, nil},
		{"no kind", "apiVersion: config.openshift.io/v1\nmetadata:\n  name: a\n", one(noKind, 1, "a"), nil},
		{"no kind, in JSON", `{"apiVersion": "config.openshift.io/v1", "metadata": {"name": "a"}}`, one(noKind, 1, "a"), nil},
		{"no kind, with a needed name", "apiVersion: v1\nmetadata:\n  name: windows-instances\n  namespace: wmco\n", one(noKind, 1, "wmco/windows-instances"), nil},
		{"no kind, without apiVersion", "metadata:\n  name: a\n", one(noKind, 1, "a"), nil},
		{"broken YAML", "foo: [bar\n", one("error ObjectMalformed at f.yaml:1"), one("warning DocumentSkipped at f.yaml:1")},
		{"broken YAML after an object", pod + "---\nfoo: [bar\n", one("error ObjectMalformed at f.yaml:6"), one("warning DocumentSkipped at f.yaml:6")},
		{"broken YAML of a kind that is not needed", "kind: Pod\nfoo: [bar\n", one("error ObjectMalformed at f.yaml:1 Pod"), []string{}},
		{"a template", "{{ if .Values.a }}\na: b\n{{ end }}\n", append(one("error InputNotManifest at f.yaml:0"), "error ObjectMalformed at f.yaml:1"), []string{}},
		{"JSON without its end", "{\"a\": [1", append(one("error InputNotManifest at f.yaml:0"), "error ObjectMalformed at f.yaml:1"), one("warning DocumentSkipped at f.yaml:1")},
		{"metadata of something else", "metadata:\n  owner: a\n", one("warning DocumentSkipped at f.yaml:1 kind"), []string{}},
		{"a chart", "apiVersion: v2\nname: chart\nversion: 1.0.0\n", one("warning DocumentSkipped at f.yaml:1 kind"), []string{}},
		{"values", "name: chart\n", []string{}, nil},
		{"items that are text", list("- a\n- b\n"), append(one(notObject, 4), fmt.Sprintf(notObject, 5)), []string{}},
		{"items of a needed list that are text", "apiVersion: config.openshift.io/v1\nkind: ImageDigestMirrorSetList\nitems:\n- a\n", one(notObject, 4), nil},
		{"items in flow style that are text", "apiVersion: v1\nkind: List\nitems: [a]\n", one(notObject, 1), []string{}},
		{"JSON items that are text", "{\"kind\": \"List\", \"items\": [\n\"a\",\nnull, true, [1]]}", append(one(notObject, 2), fmt.Sprintf(notObject, 3), fmt.Sprintf(notObject, 3)), []string{}},
		{"a list of needed objects", "[" + jsonOf("v1", "Node", "a") + "]", one(notObject, 1), nil},
		{"a list of references to needed kinds", `[{"involvedObject": ` + jsonOf("v1", "Node", "a") + "}]", one(notObject, 1), []string{}},
		{"an empty list", "[]", []string{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.folder == nil {
				c.folder = c.named
			}
			dir := folder(t, map[string]string{"f.yaml": c.content, "d/f.yaml": c.content})
			for path, want := range map[string][]string{"f.yaml": c.named, "d": c.folder} {
				got := printed(read(t, dir, []string{path}, nil, mirrorWants()))
				for i := range got {
					got[i] = strings.ReplaceAll(got[i], " d/f.yaml", " f.yaml")
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: -want +got:\n%s", path, diff)
				}
			}
		})
	}
}

func TestMessagesOfSkippedDocuments(t *testing.T) {
	text := lines("kind: imagedigestmirrorset", "---", "apiVersion: operator.openshift.io/v1alpha1", "kind: imageDigestMirrorSet", "metadata: {name: a}", "---", "- a", "---", "kind: List", "items:", "- a")
	var got []string
	for _, f := range read(t, folder(t, map[string]string{"f.yaml": text}), []string{"f.yaml"}, nil, mirrorWants()).Findings {
		got = append(got, f.Message+"; "+f.Fix)
	}
	want := []string{
		"is skipped: it is a list and not an object; write each item as a document, or all of them as the items of a kind: List",
		"is skipped: the item is text and not an object; write the object itself as the item",
		"is skipped: its apiVersion is operator.openshift.io/v1alpha1; ImageDigestMirrorSet is a kind of config.openshift.io/v1; write apiVersion: config.openshift.io/v1 and kind: ImageDigestMirrorSet",
		`is skipped: its kind is written "imagedigestmirrorset", not "ImageDigestMirrorSet"; write apiVersion: config.openshift.io/v1 and kind: ImageDigestMirrorSet`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestUnusedSources(t *testing.T) {
	dir := folder(t, map[string]string{"pod.yaml": pod, "d/pod.yaml": pod, "e/README": "", "node.yaml": node, "bad.yaml": "kind: Node\n"})
	set := read(t, dir, []string{"d", "node.yaml", "pod.yaml", "bad.yaml", "none.yaml", "-", "e"}, strings.NewReader(pod), someWants())
	if diff := cmp.Diff([]string{"d", "pod.yaml", "-", "e"}, set.Unused); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	both, err := objects.NewOverlayReader(objects.NewPathsReader([]string{"d"}, nil), objects.NewPathsReader([]string{"node.yaml", "e"}, nil)).Read(t.Context(), someWants())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"d", "e"}, both.Unused); diff != "" {
		t.Errorf("of several readers: -want +got:\n%s", diff)
	}
}
