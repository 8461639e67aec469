package fleettest

import (
	"context"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"wmco/internal/test/observer"
)

// checkCosts changes a mirror set and the proxy, and counts what docs/scale.md compares with the existing operator: neither drains a node,
// boots a host, or makes a Node NotReady. These machines have no SSH server: TestFleet counts logins.
func (s *storm) checkCosts(t *testing.T) {
	if os.Getenv(fleetVariable) == "" {
		t.Skip("TestFleet checks this for five machines; make ci-full has 30")
	}
	for _, c := range []struct{ name, object string }{
		{"mirror set", `{apiVersion: config.openshift.io/v1, kind: ImageDigestMirrorSet, metadata: {name: costs}, spec: {imageDigestMirrors: [{source: quay.io/costs, mirrors: ["costs.example.com:5000/costs"]}]}}`},
		{"proxy", `{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}, spec: {}, status: {httpProxy: "http://costs.example.com:3128", noProxy: ".cluster.local,.svc"}}`},
	} {
		boots, r := s.boots(), s.read(t)
		away := s.away(t)
		s.put(t, c.object)
		s.followed(t, r)
		took := time.Since(r.begun)
		s.rests(t)
		notReady := away()
		booted := 0
		for i, n := range s.boots() {
			booted += n - boots[i]
		}
		writes, evictions := map[string]int{}, 0
		for _, q := range s.requests(t)[r.requests:] {
			switch key := what(q); {
			case !q.IsWrite() || q.Resource == "leases" || q.Status == http.StatusConflict:
			case q.User == operatorUser, q.Agent == agentProgram:
				writes[key]++
				if q.Resource == "pods/eviction" {
					evictions++
				}
			}
		}
		n := len(s.machines)
		t.Logf("%s, %d nodes: %.1f s; %.2f node-minutes NotReady, %d evictions, %d boots, %d writes to the API server: %v", c.name, n, took.Seconds(), notReady.Minutes(), evictions, booted, sum(writes), writes)
		if notReady > 0 || evictions > 0 || booted > 0 {
			t.Errorf("%s: %s NotReady, %d evictions, %d boots", c.name, notReady, evictions, booted)
		}
		if most := 6*n + 20; sum(writes) > most { // a proxy has the most: up to 3 of the operator and 3 of the node agent for each node
			t.Errorf("%s: %d writes to the API server, more than %d", c.name, sum(writes), most)
		}
	}
}

// away begins to count how long Nodes are not Ready; the returned function ends that and returns the sum over all Nodes.
func (s *storm) away(t *testing.T) func() time.Duration {
	t.Helper()
	clients, err := kubernetes.NewForConfig(s.plane.Config)
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	nodes, err := clients.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{LabelSelector: corev1.LabelOSStable + "=windows"})
	must(t, err)
	var seeing sync.WaitGroup
	since, total := map[string]time.Time{}, time.Duration(0)
	seeing.Go(func() {
		for e := range nodes.ResultChan() {
			node, ok := e.Object.(*corev1.Node)
			if !ok {
				continue
			}
			begun, was := since[node.Name]
			switch counts := e.Type != watch.Deleted && !observer.IsReady(*node); {
			case !counts && was:
				total += time.Since(begun)
				delete(since, node.Name)
			case counts && !was:
				since[node.Name] = time.Now()
			}
		}
	})
	return func() time.Duration {
		stop()
		seeing.Wait()
		for _, begun := range since {
			total += time.Since(begun)
		}
		return total
	}
}
