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

// BenchmarkRead200MB reads 200 MiB in the forms that must-gathers and oc write. Of a hundred objects, one is needed; the others name a needed kind
// in a reference. All of it is parsed, except Pods and Events of a must-gather.
func BenchmarkRead200MB(b *testing.B) {
	for _, f := range []struct {
		name, file string
		join       func(items []string) string
		// other and needed write the i-th object.
		other, needed func(i int) string
	}{
		{"one YAML list", "all.yaml", yamlList, podYAML, nodeYAML},
		{"one JSON list", "all.json", jsonList, podJSON, nodeJSON},
		{"YAML documents", "all.yaml", yamlDocuments, podYAML, nodeYAML},
		{"a must-gather", "namespaces/n/core/pods.yaml", yamlList, podYAML, podYAML},
	} {
		b.Run(f.name, func(b *testing.B) {
			var items []string
			needed := 0
			for i, written := 1, 0; written < benchBytes; i++ {
				write := f.other
				if i%100 == 0 && !strings.Contains(f.file, "/") {
					needed++
					write = f.needed
				}
				items = append(items, write(i))
				written += len(items[i-1])
			}
			benchmarkRead(b, folder(b, map[string]string{f.file: f.join(items), "cluster-scoped-resources/README": ""}), needed)
		})
	}
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
