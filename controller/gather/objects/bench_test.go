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

// folderFiles and folderBytes are what a must-gather of a busy cluster has.
const (
	folderFiles = 2000
	folderBytes = 200 << 20
)

// BenchmarkFolder200MB reads a folder of 2,000 files, of which one in a hundred holds something needed.
func BenchmarkFolder200MB(b *testing.B) {
	for _, form := range []struct {
		name, ext string
		list      func(items []string) string
		pod       func(i int) string
		node      func(i int) string
	}{
		{"YAML", "yaml", yamlList, podYAML, nodeYAML},
		{"JSON", "json", jsonList, podJSON, nodeJSON},
	} {
		b.Run(form.name, func(b *testing.B) {
			dir := b.TempDir()
			for i := range folderFiles {
				var items []string
				for size := 0; size < folderBytes/folderFiles; size += len(items[len(items)-1]) {
					items = append(items, form.pod(i*1000+len(items)))
				}
				if i%100 == 0 {
					items = append(items, form.node(i))
				}
				folder := filepath.Join(dir, fmt.Sprintf("namespaces/ns-%d/core", i%50))
				if err := os.MkdirAll(folder, 0o755); err != nil {
					b.Fatal(err)
				}
				name := filepath.Join(folder, fmt.Sprintf("file-%d.%s", i, form.ext))
				if err := os.WriteFile(name, []byte(form.list(items)), 0o644); err != nil {
					b.Fatal(err)
				}
			}
			runtime.GC()
			peak := watchHeap()
			b.SetBytes(folderBytes)
			for b.Loop() {
				set, err := objects.Paths([]string{dir}, nil).Read(context.Background(), clusterWants())
				if err != nil || len(set.Findings) > 0 || len(set.Objects) != folderFiles/100 {
					b.Fatalf("%d objects, findings %v, error %v", len(set.Objects), set.Findings, err)
				}
			}
			b.ReportMetric(float64(peak())/(1<<20), "peak-heap-MiB")
		})
	}
}

// watchHeap samples the heap until the function it returns is called, which tells the highest sample in bytes.
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
