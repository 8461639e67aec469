package agent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/hostsim/bundletest"
)

const kubeletLog = `C:\var\log\kubelet\kubelet.log`

// withLog has a service write a log.
func (w *world) withLog(service, path, text string) {
	w.t.Helper()
	w.host.Plant(path, text)
	w.bundle = w.bundle.Changed(func(n *bundletest.Node) {
		for i := range n.Services {
			if n.Services[i].Name == service {
				n.Services[i].Logs = []bundle.Log{{Path: path, Rotation: bundle.RotationWrapper, SizeBytes: 1 << 20}}
			}
		}
	})
}

// TestARollbackIsReportedWithTheLog of the kubelet: in the report and the event, without secrets, also by another process, until the bundle is applied.
func TestARollbackIsReportedWithTheLog(t *testing.T) {
	synctest.Test(t, checkARollbackIsReportedWithTheLog)
}

func checkARollbackIsReportedWithTheLog(t *testing.T) {
	t.Helper()
	w := newWorld(t)
	w.cluster.ready = func() time.Time { return time.Time{} } // not Ready
	w.withLog("kubelet", kubeletLog, "starting\n\x1b[31mproxy http://u:hunter2@proxy refused\x1b[0m\n")
	w.change(kubeletConf, "nonsense\n")
	w.publish(bundle.ImpactRestart)
	want := bundle.LogTail{Service: "kubelet", Lines: []string{"starting", "proxy http://****:****@proxy refused"}}
	got := w.turn()
	if diff := cmp.Diff(want, got.Log); diff != "" || got.State != published.StateRolledBack {
		t.Fatalf("%s: %s (-want +got):\n%s", got.State, got.Message, diff)
	}
	if last := w.cluster.events[len(w.cluster.events)-1]; last.Reason != EventRolledBack || !strings.HasSuffix(last.Message, "; the log of kubelet ends: starting | proxy http://****:****@proxy refused") {
		t.Errorf("event %+v", last)
	}
	w.restart() // another process
	w.turn()
	if got := w.lastReport(); !cmp.Equal(want, got.Log) {
		t.Errorf("another process says %+v", got)
	}
	w.cluster.ready, w.cluster.node.Retry = w.clock.Now, "1"
	if got := w.turn(); got.State != published.StateApplied || !got.Log.IsZero() {
		t.Errorf("%s: %s, %+v", got.State, got.Message, got.Log)
	}
}
