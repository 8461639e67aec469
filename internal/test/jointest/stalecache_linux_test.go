package jointest_test

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"wmco/applier/plan"
	"wmco/controller/configure"
	"wmco/internal/test/faults"
)

// entriesLost is a network on which watches lose what happens to windows-instances, so that a cache is behind for as long as a test wants. All
// other requests and events arrive.
type entriesLost struct {
	lose atomic.Bool
	// reads is how often windows-instances was asked for without a cache.
	reads atomic.Int32
}

// transport wraps that of a client.
func (l *entriesLost) transport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/configmaps/"+configure.InstancesName) {
			l.reads.Add(1)
		}
		resp, err := next.RoundTrip(req)
		if err == nil && req.URL.Query().Get("watch") != "" && strings.HasSuffix(req.URL.Path, "/configmaps") && strings.Contains(resp.Header.Get("Content-Type"), "json") {
			resp.Body = &watchEvents{Closer: resp.Body, from: bufio.NewReader(resp.Body), network: l}
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// watchEvents are those of a watch in JSON, one in a line.
type watchEvents struct {
	io.Closer
	from    *bufio.Reader
	network *entriesLost
	left    []byte
}

func (e *watchEvents) Read(p []byte) (int, error) {
	for len(e.left) == 0 {
		line, err := e.from.ReadBytes('\n')
		if e.network.lose.Load() && bytes.Contains(line, []byte(`"name":"`+configure.InstancesName+`"`)) {
			line = nil
		}
		if e.left = line; err != nil && len(line) == 0 {
			return 0, err
		}
	}
	n := copy(p, e.left)
	e.left = e.left[n:]
	return n, nil
}

// TestAnEntryThatComesBackBeforeTheCleanup: a cache that has not seen that does not decide what cannot be undone. The host is not touched.
func TestAnEntryThatComesBackBeforeTheCleanup(t *testing.T) {
	w := newWorld(t)
	a := w.machine("instance-a", "192.0.2.71")
	w.machine("instance-b", "192.0.2.72")
	w.instances("192.0.2.71", "192.0.2.72")
	var network entriesLost
	options, err := w.settings().options(w.output())
	must(t, err)
	options.Config.Wrap(network.transport)
	clock := faults.NewClock(t.Context())
	options.Clock = clock
	w.operateWith(options)
	w.allJoin([]string{"instance-a", "instance-b"})
	w.app("guarded", 1, "instance-a")
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "guard"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guarded"}}},
	}
	w.create(budget)
	eventually(t, "the pod", func() bool { return w.running("guarded", "instance-a") == 1 })
	starts := a.Starts()

	w.removeEntry("192.0.2.71")
	w.awaitEvent("InstanceRemovalWaiting", "instance-a", "blocked", "PodDisruptionBudget guard")
	network.lose.Store(true)
	w.addEntry("192.0.2.71")
	must(t, w.Delete(t.Context(), budget))
	eventually(t, "the end of the drain", func() bool { return w.running("guarded", "instance-a") == 0 })
	// The removal goes on from here. It either ends, or asks again and again.
	reads := network.reads.Load()
	eventually(t, "the next looks at the entries", func() bool {
		clock.Step(configure.AgainDrain)
		return network.reads.Load() >= reads+3 || !w.hasNode("instance-a")
	})
	if !w.hasNode("instance-a") || !w.pinned("192.0.2.71") || a.Status("kubelet") != plan.ServiceRunning || !maps.Equal(a.Starts(), starts) {
		t.Fatalf("the host of an instance that has an entry was cleaned up: the kubelet is %s", a.Status("kubelet"))
	}
	// When the cache sees it, the instance is as before.
	network.lose.Store(false)
	w.changeEntries(func(data map[string]string) { data["192.0.2.72"] += " " })
	eventually(t, "the end of the removal", func() bool { return w.joined("instance-a") })
	if !maps.Equal(a.Starts(), starts) {
		t.Errorf("services were started %v, before %v", a.Starts(), starts)
	}
}
