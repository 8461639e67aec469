package objects_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"wmco/controller/gather/objects"
)

// benchBytes is how much a must-gather of a busy cluster has, without its logs.
const benchBytes = 200 << 20

// form is a way to write many objects.
type form struct {
	name string
	// files is how many files the text is divided into.
	files int
	ext   string
	join  func(items []string) string
	// other and needed write the i-th object.
	other, needed func(i int) string
	// every is how many objects there are for each needed one.
	every int
}

func forms() []form {
	return []form{
		{"2000 YAML lists", 2000, "yaml", yamlList, podYAML, nodeYAML, 100},
		{"2000 JSON lists", 2000, "json", jsonList, podJSON, nodeJSON, 100},
		{"one YAML list", 1, "yaml", yamlList, podYAML, nodeYAML, 100},
		{"one JSON list", 1, "json", jsonList, podJSON, nodeJSON, 100},
		{"one file of YAML Events", 1, "yaml", yamlDocuments, eventYAML, nodeYAML, 1000},
		{"one file of JSON Events", 1, "json", jsonDocuments, eventJSON, nodeJSON, 1000},
		{"2000 files of YAML documents", 2000, "yaml", yamlDocuments, podYAML, nodeYAML, 100},
		{"2000 YAML lists of ConfigMaps elsewhere", 2000, "yaml", yamlList, configMapYAML, nodeYAML, 1000},
		{"2000 JSON lists of ConfigMaps elsewhere", 2000, "json", jsonList, configMapJSON, nodeJSON, 1000},
	}
}

// write writes so many bytes into the folder and returns the number of needed objects.
func (f form) write(b *testing.B, dir string, size int) (needed int) {
	b.Helper()
	i := 0
	for file := range f.files {
		var items []string
		for written := 0; written < size/f.files; written += len(items[len(items)-1]) {
			i++
			if i%f.every == 0 {
				needed++
				items = append(items, f.needed(i))
				continue
			}
			items = append(items, f.other(i))
		}
		name := filepath.Join(dir, fmt.Sprintf("namespaces/ns-%d/core/file-%d.%s", file%50, file, f.ext))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(f.join(items)), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return needed
}

// BenchmarkRead200MB reads 200 MiB in the forms that must-gathers and oc write. Of a hundred objects or more, one is
// needed; the others name a needed kind in a reference.
func BenchmarkRead200MB(b *testing.B) {
	for _, f := range forms() {
		b.Run(f.name, func(b *testing.B) {
			dir := b.TempDir()
			benchmarkRead(b, dir, f.write(b, dir, benchBytes))
		})
	}
}

// BenchmarkReadNeeded reads what oc get writes of objects that are all needed.
func BenchmarkReadNeeded(b *testing.B) {
	for _, c := range []struct{ ext, text string }{
		{"yaml", yamlList(largeNodes(podYAML))},
		{"json", jsonList(largeNodes(podJSON))},
	} {
		b.Run(c.ext, func(b *testing.B) {
			dir := folder(b, map[string]string{"nodes." + c.ext: c.text})
			benchmarkRead(b, dir, 500)
		})
	}
}

// largeNodes returns 500 Nodes with about as much text as Nodes have in a cluster.
func largeNodes(pod func(i int) string) []string {
	items := make([]string, 500)
	for i := range items {
		items[i] = strings.Replace(pod(i), "Pod", "Node", 1)
	}
	return items
}

// benchmarkRead reads a folder that has so many needed objects.
func benchmarkRead(b *testing.B, dir string, needed int) {
	runtime.GC()
	peak := watchHeap()
	b.SetBytes(sizeOfFolder(b, dir))
	for b.Loop() {
		set, err := objects.NewPathsReader([]string{dir}, nil).Read(context.Background(), clusterWants())
		if err != nil || len(set.Findings) > 0 || len(set.Objects) != needed {
			b.Fatalf("%d objects of %d, findings %v, error %v", len(set.Objects), needed, set.Findings, err)
		}
	}
	b.ReportMetric(float64(peak())/(1<<20), "peak-heap-MiB")
}

func sizeOfFolder(b *testing.B, dir string) int64 {
	var size int64
	err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return size
}

// watchHeap samples the heap until the returned function is called, which returns the highest sample in bytes.
func watchHeap() func() uint64 {
	stop, result := make(chan struct{}), make(chan uint64)
	go func() {
		var highest uint64
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for {
			metrics.Read(sample)
			highest = max(highest, sample[0].Value.Uint64())
			select {
			case <-stop:
				result <- highest
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		close(stop)
		return <-result
	}
}

// clusterWants is about what rendering a node needs.
func clusterWants() []objects.Want {
	wants := []objects.Want{
		{Version: "v1", Kind: "Node"},
		{Version: "v1", Kind: "Secret", Namespace: "openshift-config", Names: []string{"pull-secret"}},
		{Version: "v1", Kind: "ConfigMap", Namespace: "openshift-config"},
		{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "openshift-windows-machine-config-operator"},
	}
	for _, kind := range []string{"APIServer", "ClusterVersion", "Image", "ImageDigestMirrorSet", "ImageTagMirrorSet", "Infrastructure", "Network", "Proxy"} {
		wants = append(wants, objects.Want{Group: "config.openshift.io", Version: "v1", Kind: kind})
	}
	for _, kind := range []string{"MachineConfig", "MachineConfigPool", "ControllerConfig"} {
		wants = append(wants, objects.Want{Group: "machineconfiguration.openshift.io", Version: "v1", Kind: kind})
	}
	return append(wants, objects.Want{Group: "machine.openshift.io", Version: "v1beta1", Kind: "Machine"})
}

func yamlList(items []string) string {
	var out bytes.Buffer
	out.WriteString("---\napiVersion: v1\nitems:\n")
	for _, item := range items {
		for i, line := range strings.Split(strings.TrimSuffix(item, "\n"), "\n") {
			out.WriteString([]string{"- ", "  "}[min(i, 1)] + line + "\n")
		}
	}
	out.WriteString("kind: List\nmetadata:\n  resourceVersion: \"1\"\n")
	return out.String()
}

func jsonList(items []string) string {
	return `{"apiVersion": "v1", "items": [` + strings.Join(items, ", ") + "],\n" + `"kind": "List"}`
}

func podYAML(i int) string {
	var out strings.Builder
	fmt.Fprintf(&out, "apiVersion: v1\nkind: Pod\nmetadata:\n  name: pod-%d\n  namespace: ns\n  ownerReferences:\n  - apiVersion: v1\n    kind: Node\n    name: n\n", i)
	out.WriteString("spec:\n  containers:\n")
	for c := range 40 {
		fmt.Fprintf(&out, "  - name: container-%d\n    image: registry.example.com/team/image@sha256:%064d\n    command:\n    - /bin/sh\n    - -c\n    - |\n      set -eu\n      exec /usr/bin/program --kind: Node --flag=%d\n", c, c, c)
	}
	return out.String()
}

func nodeYAML(i int) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata:\n  name: node-%d\nstatus:\n  capacity:\n    cpu: \"4\"\n", i)
}

func podJSON(i int) string {
	var out strings.Builder
	fmt.Fprintf(&out, `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod-%d", "namespace": "ns", "ownerReferences": [{"kind": "Node", "name": "n"}]}, "spec": {"containers": [`, i)
	for c := range 40 {
		if c > 0 {
			out.WriteString(",")
		}
		fmt.Fprintf(&out, "\n    {\n      \"name\": \"container-%d\",\n      \"image\": \"registry.example.com/team/image@sha256:%064d\",\n      \"command\": [\"/bin/sh\", \"-c\", \"set -eu\\nexec /usr/bin/program \\\"--flag=%d\\\"\"]}", c, c, c)
	}
	out.WriteString("]}}")
	return out.String()
}

func nodeJSON(i int) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-%d"}}`, i)
}

// yamlDocuments joins objects to a file of documents.
func yamlDocuments(items []string) string { return "---\n" + strings.Join(items, "---\n") }

// jsonDocuments joins objects to a file of one after the other.
func jsonDocuments(items []string) string { return strings.Join(items, "\n") }

func eventYAML(i int) string {
	return fmt.Sprintf("apiVersion: v1\ncount: 3\neventTime: null\nfirstTimestamp: \"2026-06-02T08:14:05Z\"\ninvolvedObject:\n  apiVersion: v1\n  kind: Node\n  name: worker-%d\n  uid: 0f3c2a44-67aa-4f5e-9d53-0a0e4a1b2c3d\nkind: Event\nlastTimestamp: \"2026-06-02T08:34:05Z\"\nmessage: 'Node worker-%d status is now: NodeHasSufficientMemory'\nmetadata:\n  creationTimestamp: \"2026-06-02T08:14:05Z\"\n  name: worker-%d.17b2f0c1d2e3f4a5\n  namespace: default\n  resourceVersion: \"%d\"\n  uid: 7d1e9f1c-51cb-4b9c-8e0e-52a1f0a9d3b1\nreason: NodeHasSufficientMemory\nreportingComponent: kubelet\nreportingInstance: worker-%d\nsource:\n  component: kubelet\n  host: worker-%d\ntype: Normal\n", i, i, i, i, i, i)
}

func eventJSON(i int) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "count": 3, "eventTime": null, "firstTimestamp": "2026-06-02T08:14:05Z", "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": "worker-%d", "uid": "0f3c2a44-67aa-4f5e-9d53-0a0e4a1b2c3d"}, "kind": "Event", "lastTimestamp": "2026-06-02T08:34:05Z", "message": "Node worker-%d status is now: NodeHasSufficientMemory", "metadata": {"creationTimestamp": "2026-06-02T08:14:05Z", "name": "worker-%d.17b2f0c1d2e3f4a5", "namespace": "default", "resourceVersion": "%d", "uid": "7d1e9f1c-51cb-4b9c-8e0e-52a1f0a9d3b1"}, "reason": "NodeHasSufficientMemory", "reportingComponent": "kubelet", "reportingInstance": "worker-%d", "source": {"component": "kubelet", "host": "worker-%d"}, "type": "Normal"}`, i, i, i, i, i, i)
}

func configMapYAML(i int) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config-%d\n  namespace: ns\ndata:\n  ca-bundle.crt: |\n", i) + strings.Repeat("    MIIDSjCCAjKgAwIBAgIQRK+wgNajJ7qJMDmGLvhAazANBgkqhkiG9w0BAQUFADA/\n", 150)
}

func configMapJSON(i int) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "data": {"ca-bundle.crt": "%s"}, "kind": "ConfigMap", "metadata": {"name": "config-%d", "namespace": "ns"}}`, strings.Repeat(`MIIDSjCCAjKgAwIBAgIQRK+wgNajJ7qJMDmGLvhAazANBgkqhkiG9w0BAQUFADA/\n`, 150), i)
}
