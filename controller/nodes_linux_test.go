package controller

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

// exampleNode returns the joined node of the example cluster and the facts of its host.
func exampleNode(t testing.TB) (corev1.Node, bundle.Facts) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "golden", "clusters", "none", "nodes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var example corev1.Node
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		if strings.Contains(doc, "name: "+nodeName+"\n") {
			if err := yaml.Unmarshal([]byte(doc), &example); err != nil {
				t.Fatal(err)
			}
		}
	}
	file, err := os.Open(filepath.Join("..", "golden", "facts", "none.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	facts, err := bundle.DecodeFacts(file)
	if err != nil {
		t.Fatal(err)
	}
	return example, facts[0]
}

func nodeNameOf(i int) string { return fmt.Sprintf("winworker-%04d", i) }

// factsLike are those of the host of one of many nodes.
func factsLike(facts bundle.Facts, i int) bundle.Facts {
	return simulation.FactsAt(facts, strings.ToUpper(nodeNameOf(i)), fmt.Sprintf("10.1.%d.%d", i/250, i%250+1), subnetOf(i))
}

func subnetOf(i int) string { return fmt.Sprintf("10.%d.%d.0/24", 132+i/256, i%256) }

func nodeLike(t testing.TB, example corev1.Node, facts bundle.Facts, i int) *corev1.Node {
	t.Helper()
	facts = factsLike(facts, i)
	node := example.DeepCopy()
	name := nodeNameOf(i)
	node.ObjectMeta.Name, node.ObjectMeta.ResourceVersion, node.ObjectMeta.UID = name, "", ""
	node.Labels[corev1.LabelHostname] = name
	node.Annotations[subnetAnnotation] = subnetOf(i)
	for k, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			node.Status.Addresses[k].Address = facts.Addresses[0]
		} else {
			node.Status.Addresses[k].Address = name
		}
	}
	return node
}

// parallel calls do for 0 to n-1, some at the same time.
func parallel(t testing.TB, workers, n int, do func(i int) error) {
	t.Helper()
	var all errgroup.Group
	all.SetLimit(workers)
	for i := range n {
		all.Go(func() error { return do(i) })
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
}

// loadAverage is that of the computer over the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(text))[0]
}
