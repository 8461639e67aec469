package golden

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/inputs/desired"
	"wmco/controller/layers"
)

// TestWhatIsPublishedForEveryCluster keeps golden/published: the objects that the operator writes in a cluster with the inputs of a
// case in which nothing is published yet. Cases whose bundles may only be shown, or without a node that has joined, have none.
func TestWhatIsPublishedForEveryCluster(t *testing.T) {
	texts := publishedTexts(t, nil)
	if len(texts) < 15 {
		t.Errorf("only %d cases have something to publish", len(texts))
	}
	compareTree(t, "published", texts)
}

// objectsFile names the objects in a difference.
const objectsFile = "objects.yaml"

// publishedBase is the case whose objects are kept whole; of the others is kept what differs.
const publishedBase = "none"

func publishedTexts(t testing.TB, change change) map[string][]byte {
	t.Helper()
	all := map[string]string{}
	for _, dir := range caseDirs(t, "cases") {
		if list := change.to(t, joinedNodes(t, dir)); len(list) > 0 {
			c, told := publication(t, list)
			checkPublished(t, list, c, told)
			all[filepath.Base(dir)] = string(shown(t, c, told))
		}
	}
	base := publishedNames{}
	whole := base.named(all[publishedBase], "digest")
	texts := map[string][]byte{}
	for name, text := range all {
		if name == publishedBase {
			texts[name+".yaml"] = []byte(text)
			continue
		}
		title := fmt.Sprintf("%s: what differs from %s", name, publishedBase)
		text = maps.Clone(base).named(text, "other")
		texts[name+".diff"] = differences(title, map[string]string{objectsFile: whole}, map[string]string{objectsFile: text})
	}
	return texts
}

// joinedNodes returns the bundles of a case that the operator publishes.
func joinedNodes(t testing.TB, dir string) []desired.Rendered {
	t.Helper()
	return joined.get(t, dir, func() []desired.Rendered {
		h, err := load(t, dir).Read(t.Context(), dir, key)
		must(t, err)
		if len(desired.BlockingFindings(h.Findings)) > 0 {
			return nil
		}
		list, findings, err := h.RenderBundles(h.ListJoined())
		if err != nil || findings.Refused() {
			t.Fatalf("%v %+v", err, findings)
		}
		return list
	})
}

// joined is what joinedNodes returned, by folder.
var joined memo[[]desired.Rendered]

// publishedNames are names of digests, by the part of them that is in names of objects.
type publishedNames map[string]string

var (
	publishedDigest = regexp.MustCompile(`(?:sha256:)?([0-9a-f]{40})(?:[0-9a-f]{24})?\b`)
	publishedBytes  = regexp.MustCompile(`\b\d+ bytes(?:, sha256:[0-9a-f]{64})?`)
)

// named returns a text without sizes, and with names in place of digests: the known ones for what is known.
func (n publishedNames) named(text, kind string) string {
	return publishedDigest.ReplaceAllStringFunc(publishedBytes.ReplaceAllString(text, "bytes"), func(d string) string {
		begin := publishedDigest.FindStringSubmatch(d)[1]
		if n[begin] == "" {
			n[begin] = fmt.Sprintf("%s-%d", kind, len(n)+1)
		}
		return n[begin]
	})
}

// publication decides as the operator does. Told is the annotation of each node, when it learns of its first bundle.
func publication(t testing.TB, list []desired.Rendered) (c layers.Changes, told map[string]string) {
	t.Helper()
	var wanted []layers.Wanted
	var o layers.Observed
	told = map[string]string{}
	for _, r := range list {
		w, err := layers.PackBundle(r.Node.Name, r.Bundle.Bundle)
		must(t, err)
		wanted = append(wanted, w)
		told[r.Node.Name], err = w.DesiredAnnotation(gather.OperatorNamespace, bundle.ImpactNone).Encode()
		must(t, err)
		o.Nodes = append(o.Nodes, layers.Node{Name: r.Node.Name, Known: true})
	}
	return layers.PlanChanges(wanted, o), told
}

// checkPublished opens the objects as a node does: it gets the bundle that was rendered for it.
func checkPublished(t testing.TB, list []desired.Rendered, c layers.Changes, told map[string]string) {
	t.Helper()
	parts := map[string][]byte{}
	for _, s := range c.Create {
		parts[s.Name] = s.SecretObject(gather.OperatorNamespace).Data[published.SecretKey]
	}
	for _, r := range list {
		d, err := published.DecodeDesired(told[r.Node.Name])
		must(t, err)
		if d.Bundle != r.Bundle.Digest {
			t.Errorf("%s: bundle %s is published, %s is rendered", r.Node.Name, d.Bundle.Short(), r.Bundle.Digest.Short())
		}
		for _, l := range []published.Layer{d.Cluster, d.Node} {
			var have [][]byte
			for _, name := range l.Names() {
				have = append(have, parts[name])
				if !slices.Contains(c.Readable, name) {
					t.Errorf("%s may not read %s", r.Node.Name, name)
				}
			}
			if _, err := l.Open(have); err != nil {
				t.Errorf("%s: %v", r.Node.Name, err)
			}
		}
		if !slices.Contains(c.Readers, layers.NodeUser(r.Node.Name)) {
			t.Errorf("%s may read nothing", r.Node.Name)
		}
	}
}

// shown prints the objects in the order in which they are written. Compressed bytes are shown as their number and digest.
func shown(t testing.TB, c layers.Changes, told map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	write := func(kind schema.GroupVersionKind, object any) {
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		must(t, err)
		u["apiVersion"], u["kind"] = kind.ToAPIVersionAndKind()
		delete(u["metadata"].(map[string]any), "creationTimestamp")
		delete(u, "status")
		if u["spec"] != nil && len(u["spec"].(map[string]any)) == 0 {
			delete(u, "spec")
		}
		if data, ok := u["data"].(map[string]any); ok {
			for name, value := range object.(*corev1.Secret).Data {
				data[name] = summary(value)
			}
		}
		text, err := yaml.Marshal(u)
		must(t, err)
		if out.Len() > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	for _, s := range c.Create {
		write(corev1.SchemeGroupVersion.WithKind("Secret"), s.SecretObject(gather.OperatorNamespace))
	}
	write(rbacv1.SchemeGroupVersion.WithKind("Role"), layers.LayerRole(gather.OperatorNamespace, c.Readable))
	write(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), layers.LayerRoleBinding(gather.OperatorNamespace, c.Readers))
	for _, name := range slices.Sorted(maps.Keys(told)) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{published.DesiredAnnotation: readable(t, told[name])}}}
		write(corev1.SchemeGroupVersion.WithKind("Node"), node)
	}
	return out.Bytes()
}

// readable indents the annotation; a layer that stands in it is summarized.
func readable(t testing.TB, annotation string) string {
	t.Helper()
	var d map[string]any
	must(t, json.Unmarshal([]byte(annotation), &d))
	whole, err := published.DecodeDesired(annotation)
	must(t, err)
	if layer := d["node"].(map[string]any); layer["inline"] != nil {
		layer["inline"] = summary(whole.Node.Inline)
	}
	text, err := yaml.Marshal(d)
	must(t, err)
	return fmt.Sprintf("# %d bytes of JSON\n%s", len(annotation), text)
}

func summary(data []byte) string { return fmt.Sprintf("%d bytes, %s", len(data), bundle.Of(data)) }

// TestLayersOfAnEarlierRenderingAreShared: a node layer that is the same again takes no more memory.
func TestLayersOfAnEarlierRenderingAreShared(t *testing.T) {
	dir := filepath.Join("cases", "none")
	h, err := load(t, dir).Read(t.Context(), dir, key)
	must(t, err)
	list, _, err := h.RenderBundles(h.ListJoined())
	must(t, err)
	if len(list) == 0 {
		t.Fatal("no node has joined")
	}
	earlier := map[bundle.Digest]bundle.Layer{}
	for _, r := range list {
		earlier[r.Bundle.NodeDigest] = r.Bundle.Bundle.Node
	}
	again, _, err := h.RenderBundlesSharing(h.ListJoined(), func(d bundle.Digest) (bundle.Layer, bool) { l, ok := earlier[d]; return l, ok })
	must(t, err)
	forged, _, err := h.RenderBundlesSharing(h.ListJoined(), func(d bundle.Digest) (bundle.Layer, bool) {
		l := earlier[d]
		l.Services = nil
		return l, true
	})
	must(t, err)
	for i, r := range forged {
		if !reflect.DeepEqual(r.Bundle.Bundle.Node, list[i].Bundle.Bundle.Node) {
			t.Errorf("node %s gets what another layer of that digest has", r.Node.Name)
		}
	}
	for i, r := range again {
		before := list[i].Bundle
		if r.Bundle.Digest != before.Digest || len(r.Bundle.Bundle.Node.Services) == 0 || &r.Bundle.Bundle.Node.Services[0] != &before.Bundle.Node.Services[0] {
			t.Errorf("the layer of node %s is not the one that is known", r.Node.Name)
		}
		if causes := h.RenderProvenance(r.Node); len(causes) == 0 || !reflect.DeepEqual(causes, before.Provenance) {
			t.Errorf("node %s: %v cause its bundle, before %v", r.Node.Name, causes, before.Provenance)
		}
	}
}
