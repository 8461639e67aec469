package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
)

// traffic counts the requests of the operator.
type traffic struct {
	http.RoundTripper
	reads, writes, sent atomic.Int64
}

// RoundTrip implements http.RoundTripper. The Lease and Events are no part of a publication.
func (t *traffic) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case strings.Contains(r.URL.Path, "/leases") || strings.Contains(r.URL.Path, "/events"):
	case r.Method == http.MethodGet:
		t.reads.Add(1)
	default:
		t.writes.Add(1)
		t.sent.Add(max(r.ContentLength, 0))
	}
	return t.RoundTripper.RoundTrip(r)
}

// BenchmarkPublish publishes for joined nodes on the real API server: a mirror set is created, everything is rendered once, every node
// learns of its bundle, and the old layer is collected. No agent runs; time includes the API server, cpu-ms is the operator's alone.
// Wanted for 1,000 nodes: one rendering, and a write for each node and five more.
func BenchmarkPublish(b *testing.B) {
	cluster.Load(b, filepath.Join("..", "deploy", "crd"))
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) { benchPublish(b, n) })
	}
}

func benchPublish(b *testing.B, n int) {
	golden := filepath.Join("..", "golden")
	cluster.Load(b, filepath.Join(golden, "clusters", "common"), filepath.Join(golden, "clusters", "none"), filepath.Join("..", "deploy", "rbac"))
	admin := cluster.Client(b)
	createNodes(b, admin, n)
	b.Cleanup(func() {
		_ = admin.DeleteAllOf(context.Background(), &corev1.Secret{}, client.InNamespace(gather.OperatorNamespace), client.HasLabels{published.LayerLabel})
	})
	var count traffic
	done := startOperator(b, &count)
	<-done // the first bundles
	var cpu time.Duration
	iterations := 0
	renders := countRenders(b)
	count.reads.Store(0)
	count.writes.Store(0)
	count.sent.Store(0)
	for b.Loop() {
		before := cpuTime(b)
		set := mirrorSet(fmt.Sprintf("bench-%d-%d", n, iterations), "quay.io")
		if err := admin.Create(b.Context(), set); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = admin.Delete(context.Background(), set) })
		if nodes := <-done; nodes != n {
			b.Fatalf("published for %d nodes", nodes)
		}
		<-done // the old layer is collected
		cpu += cpuTime(b) - before
		iterations++
		b.StopTimer()
		if err := admin.Delete(b.Context(), set); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		<-done
		<-done
	}
	changes := float64(2 * iterations) // each set is created and removed
	b.ReportMetric(float64(countRenders(b)-renders)/changes, "renders/change")
	b.ReportMetric(float64(count.writes.Load())/changes, "writes/change")
	b.ReportMetric(float64(count.reads.Load())/changes, "reads/change")
	b.ReportMetric(float64(count.sent.Load())/changes/1024, "KiB-sent/change")
	b.ReportMetric(float64(cpu.Milliseconds())/float64(iterations), "cpu-ms/change")
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/1024/1024, "heap-MiB")
}

// startOperator runs the operator; the channel has the number of nodes of each publication.
func startOperator(b *testing.B, count *traffic) <-chan int {
	b.Helper()
	config := rest.CopyConfig(cluster.Config(b))
	config.QPS = -1 // what is measured is the work, not the pace
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + gather.OperatorNamespace + ":" + operatorName, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { count.RoundTripper = rt; return count })
	done := make(chan int, 100)
	sink := funcr.NewJSON(func(line string) {
		var said struct {
			Msg   string `json:"msg"`
			Nodes int    `json:"nodes"`
		}
		if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "published" {
			done <- said.Nodes
		}
	}, funcr.Options{})
	log.SetLogger(logr.Discard())
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{Config: config, HealthAddress: "0", MetricsAddress: "0", SkipNameValidation: true, Log: sink, settle: 500 * time.Millisecond})
	}()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	return done
}

// createNodes copies the joined node of the example cluster, with the facts that its agent reports. The original goes.
func createNodes(b *testing.B, admin client.Client, n int) {
	b.Helper()
	text, err := os.ReadFile(filepath.Join("..", "golden", "clusters", "none", "nodes.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	var example corev1.Node
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		if strings.Contains(doc, "name: "+nodeName+"\n") {
			if err := yaml.Unmarshal([]byte(doc), &example); err != nil {
				b.Fatal(err)
			}
		}
	}
	file, err := os.Open(filepath.Join("..", "golden", "facts", "none.json"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	facts, err := bundle.DecodeFacts(file)
	if err != nil {
		b.Fatal(err)
	}
	if err := admin.Delete(b.Context(), &corev1.Node{ObjectMeta: example.ObjectMeta}); err != nil {
		b.Fatal(err)
	}
	for i := range n {
		node := nodeLike(b, example, facts[0], i)
		if err := admin.Create(b.Context(), node); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = admin.Delete(context.Background(), node) })
	}
}

func nodeLike(b *testing.B, example corev1.Node, facts bundle.Facts, i int) *corev1.Node {
	b.Helper()
	node := example.DeepCopy()
	name, address := fmt.Sprintf("winworker-%04d", i), fmt.Sprintf("10.1.%d.%d", i/250, i%250+1)
	node.ObjectMeta.Name, node.ObjectMeta.ResourceVersion, node.ObjectMeta.UID = name, "", ""
	node.Labels[corev1.LabelHostname] = name
	node.Annotations[subnetAnnotation] = fmt.Sprintf("10.%d.%d.0/24", 132+i/250, i%250)
	for k, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			node.Status.Addresses[k].Address = address
		} else {
			node.Status.Addresses[k].Address = name
		}
	}
	facts.HostName, facts.Addresses = strings.ToUpper(name), []string{address}
	text, err := published.Report{State: published.StateApplied, Facts: &facts}.Encode()
	if err != nil {
		b.Fatal(err)
	}
	node.Annotations[published.ReportAnnotation] = text
	return node
}

// cpuTime is that of this process, in which the operator runs.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
