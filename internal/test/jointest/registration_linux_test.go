package jointest_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"wmco/internal/test/faults"
)

// heldNodes lets no Node be written while it holds.
type heldNodes struct {
	http.RoundTripper
	holds *atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (h heldNodes) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.holds.Load() && r.Method == http.MethodPatch && strings.HasPrefix(r.URL.Path, "/api/v1/nodes/") {
		return nil, errors.New("held by a test")
	}
	return h.RoundTripper.RoundTrip(r)
}

// TestAHostThatHasLostItsNodeBeforeItWasComplete: its kubelet has its certificate, and its Node was deleted, or etcd was restored to before it. A
// kubelet registers when it starts, so it is restarted. One that waits for its certificate is left alone.
func TestAHostThatHasLostItsNodeBeforeItWasComplete(t *testing.T) {
	w := newWorld(t)
	lost := w.machine("instance-lost", "192.0.2.146")
	waits := w.machine("waits", "192.0.2.147") // the approver of the cluster knows no such name
	w.machineObject("waits", "192.0.2.147")
	w.instances("192.0.2.146")
	options, err := w.settings().options(w.output())
	must(t, err)
	clock := faults.NewClock(t.Context())
	var holds atomic.Bool
	holds.Store(true)
	options.Clock = clock
	options.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return heldNodes{next, &holds} })
	w.operateWith(options)
	eventually(t, "a Node", func() bool { return w.hasNode("instance-lost") })
	eventually(t, "a kubelet that waits for its certificate", func() bool { return waits.Starts()["kubelet"] > 0 })
	must(t, w.Delete(t.Context(), w.node("instance-lost")))
	holds.Store(false)
	eventually(t, "an operator that waits for the Nodes", func() bool {
		const waiting = "waiting for the Node: "
		return strings.HasPrefix(w.host("192.0.2.146").Message, waiting) && strings.HasPrefix(w.host("waits").Message, waiting)
	})
	before := lost.Starts()["kubelet"]
	if w.hasNode("instance-lost") {
		t.Fatal("the kubelet has registered its Node again")
	}
	clock.Step(3 * time.Minute)
	w.allJoin([]string{"instance-lost"})
	const restarted = `msg="restarted a kubelet that has its certificate and has registered no Node" logger=join host=`
	if !strings.Contains(w.log.String(), restarted+"192.0.2.146") {
		t.Errorf("the kubelet was started %d times, before %d, and not by the operator", lost.Starts()["kubelet"], before)
	}
	eventually(t, "an operator that has asked the other host, and is done with it", func() bool {
		_, after, asked := strings.Cut(w.log.String(), `msg="a host waits for its Node" logger=join host=192.0.2.147 `)
		return asked && strings.Contains(after, "name=waits state=")
	})
	if strings.Contains(w.log.String(), restarted+"192.0.2.147") {
		t.Errorf("a kubelet that waits for its certificate was restarted: it was started %d times", waits.Starts()["kubelet"])
	}
}
