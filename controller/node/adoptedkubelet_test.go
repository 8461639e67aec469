package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/payload"
)

// look is what one look at a Node sees: seconds by the clock of the operator, and the condition Ready.
type look struct {
	at     int
	status corev1.ConditionStatus
	report int
	// version is that of the kubelet.
	version string
}

func (l look) condition() corev1.NodeCondition {
	c := corev1.NodeCondition{Type: corev1.NodeReady, Status: l.status, Reason: "KubeletNotReady", Message: "no network"}
	if l.report != 0 {
		c.LastHeartbeatTime = metav1.Unix(int64(l.report), 0)
	}
	return c
}

// expired is a context that ends soon.
func expired(t *testing.T) context.Context {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(stop)
	return ctx
}

// TestAnAdoptionIsConfirmedByItsKubelet: each case ends with the look that confirms, or with one that does not.
func TestAnAdoptionIsConfirmedByItsKubelet(t *testing.T) {
	const ready, not, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	for name, tt := range map[string]struct {
		seen      observedKubelet
		looks     []look
		confirmed bool
	}{
		"the kubelet has reported since it was stopped":              {observedKubelet{before: time.Unix(100, 0)}, []look{{0, ready, 100, ""}, {1, ready, 101, ""}}, true},
		"an earlier time is another report: the clock was set":       {observedKubelet{before: time.Unix(100, 0)}, []look{{0, ready, 40, ""}}, true},
		"the last report is that from before the stop":               {observedKubelet{before: time.Unix(100, 0)}, []look{{0, ready, 100, ""}, {300, ready, 100, ""}}, false},
		"it reports, and the Node is not Ready":                      {observedKubelet{before: time.Unix(100, 0)}, []look{{0, not, 101, ""}, {300, not, 130, ""}}, false},
		"it is lost":                                                 {observedKubelet{before: time.Unix(100, 0)}, []look{{0, ready, 100, ""}, {50, unknown, 100, ""}}, false},
		"a report of the old kubelet that came late":                 {observedKubelet{before: time.Unix(100, 0), version: "v1.36.3"}, []look{{0, ready, 101, "v1.35.9"}}, false},
		"the new kubelet after a late report of the old one":         {observedKubelet{before: time.Unix(100, 0), version: "v1.36.3"}, []look{{0, ready, 101, "v1.35.9"}, {1, ready, 102, "v1.36.3"}}, true},
		"another build of the version":                               {observedKubelet{before: time.Unix(100, 0), version: "v1.36.3"}, []look{{0, ready, 101, "v1.36.3+1a2b3c4"}}, true},
		"another operator began, and the old kubelet is there":       {observedKubelet{version: "v1.36.3"}, []look{{0, ready, 100, "v1.35.9"}, {60, ready, 160, "v1.35.9"}}, false},
		"it was not restarted":                                       {observedKubelet{unrestarted: true}, []look{{0, ready, 100, ""}}, true},
		"it was not restarted, and the Node is not Ready":            {observedKubelet{unrestarted: true}, []look{{0, not, 100, ""}}, false},
		"another operator began, and the kubelet reports":            {observedKubelet{}, []look{{0, ready, 100, ""}, {5, ready, 110, ""}}, true},
		"another operator began, and the Node stays Ready":           {observedKubelet{}, []look{{0, ready, 100, ""}, {60, ready, 100, ""}}, true},
		"another operator began, and the Node is Ready for a moment": {observedKubelet{}, []look{{0, ready, 100, ""}, {59, ready, 100, ""}}, false},
		"another operator began, and the Node was lost in between":   {observedKubelet{}, []look{{0, ready, 100, ""}, {40, unknown, 100, ""}, {70, ready, 100, ""}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			for _, l := range tt.looks {
				err = tt.seen.judgeReport(kubeletReport{l.condition(), l.version}, time.Unix(int64(l.at), 0))
			}
			if (err == nil) != tt.confirmed {
				t.Errorf("confirmed %t: %v", err == nil, err)
			}
			if err != nil && !errors.Is(err, errKubeletSilent) && !strings.Contains(err.Error(), "KubeletNotReady: no network") {
				t.Errorf("it does not say what is wrong: %v", err)
			}
		})
	}
}

// TestTheReportOfAStoppedKubeletIsReadWhenItHasStopped, and not when another service has.
func TestTheReportOfAStoppedKubeletIsReadWhenItHasStopped(t *testing.T) {
	node := &corev1.Node{}
	node.Name = "a"
	node.Status.Conditions = []corev1.NodeCondition{look{status: corev1.ConditionTrue, report: 100}.condition()}
	k := newAdoptedKubelet(fake.NewClientBuilder().WithObjects(node).Build(), "a", clock.RealClock{})
	for _, tt := range []struct {
		action    protocol.Action
		restarted bool
		before    int64
	}{
		{protocol.Action{Verb: protocol.VerbStop, Entry: bundle.KindService.ID("csi-proxy")}, false, 0},
		{protocol.Action{Verb: protocol.VerbStop, Entry: bundle.KindService.ID(kubeletService)}, true, 100},
		{protocol.Action{Verb: protocol.VerbStart, Entry: bundle.KindService.ID(kubeletService)}, true, 100},
	} {
		k.NoteEvent(t.Context(), protocol.Event{Event: protocol.EventAction, Action: &tt.action})
		if before := max(k.before.Unix(), 0); k.restarted != tt.restarted || before != tt.before {
			t.Errorf("after %s %s: restarted %t, last report %d", tt.action.Verb, tt.action.Entry, k.restarted, before)
		}
	}
	if k.pause = time.Millisecond; !errors.Is(k.AwaitConfirmation(expired(t)), errKubeletSilent) {
		t.Error("the report from before the restart confirms it")
	}
}

// TestTheManifestSaysWhichKubeletConfirms: the Node is Ready by another report, and has the version of the old kubelet.
func TestTheManifestSaysWhichKubeletConfirms(t *testing.T) {
	for version, confirmed := range map[string]bool{"v1.35.9": false, "v1.36.3": true} {
		node := &corev1.Node{}
		node.Name, node.Status.NodeInfo.KubeletVersion = "a", version
		node.Status.Conditions = []corev1.NodeCondition{look{status: corev1.ConditionTrue, report: 101}.condition()}
		k := newAdoptedKubelet(fake.NewClientBuilder().WithObjects(node).Build(), "a", clock.RealClock{})
		k.pause, k.watched, k.restarted, k.before = time.Millisecond, true, true, time.Unix(100, 0)
		k.NoteManifest(bundle.Manifest{Layers: []bundle.Index{{Layer: bundle.Layer{Payload: []bundle.Payload{
			{Component: payload.Containerd, Version: "v2.4.2"}, {Component: payload.Kubelet, Version: "v1.36.3"},
		}}}}})
		err := k.AwaitConfirmation(expired(t))
		if (err == nil) != confirmed || err != nil && !strings.Contains(err.Error(), "the Node has kubelet v1.35.9, and the bundle v1.36.3") {
			t.Errorf("a Node with kubelet %s: %v", version, err)
		}
	}
}
