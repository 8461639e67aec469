package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/payload"
)

// kubeletService is the service whose restart an adoption is confirmed after.
const kubeletService = "kubelet"

const (
	// kubeletPause is the time between two looks at the Node.
	kubeletPause = time.Second
	// readNodeWithin is how long one look may take.
	readNodeWithin = 10 * time.Second
	// kubeletSteady is how long a Node has to be seen Ready where it is not known what its kubelet reported before the
	// change. It is longer than a cluster takes to see that a kubelet is lost (--node-monitor-grace-period of
	// kube-controller-manager, 50 s).
	kubeletSteady = time.Minute
	// maxReadyText is how many bytes of the message of a Node are shown.
	maxReadyText = 300
)

var errKubeletSilent = errors.New("the kubelet has not reported to the API server since it was restarted")

// adoptedKubelet confirms an adoption: the Node is Ready by a report of the kubelet that was started by the run. Probes
// on the host do not see a kubelet that the API server refuses. Times of the host are compared only for being
// different: its clock may be wrong.
//
//	stopped: the last report of the old kubelet --> started --> another report, and Ready: confirmed
//	no stop seen, as another operator has begun the run  -----> another report than the first one seen, or Ready for kubeletSteady
//	a run that does not restart the kubelet ------------------> Ready
//
// In each case the Node has the version of the kubelet in the bundle: a report that the old kubelet sent before it was
// stopped may arrive later.
type adoptedKubelet struct {
	live  client.Reader
	node  string
	clock clock.Clock
	// pause is the time between two looks.
	pause time.Duration

	mu sync.Mutex
	// watched is true if the run is seen from its beginning, restarted if it stops or starts the kubelet.
	watched, restarted bool
	// before is the time in the last report of the kubelet that was stopped, zero if that was not seen.
	before time.Time
	// version is that of the kubelet in the bundle; empty if it brings none.
	version string
}

func newAdoptedKubelet(live client.Reader, node string, c clock.Clock) *adoptedKubelet {
	return &adoptedKubelet{live: live, node: node, clock: c, pause: kubeletPause}
}

// NoteManifest implements hosts.Confirmation.
func (k *adoptedKubelet) NoteManifest(m bundle.Manifest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range m.Layers {
		for _, p := range l.Layer.Payload {
			if p.Component == payload.Kubelet {
				k.version = p.Version
			}
		}
	}
}

// NoteEvent implements hosts.Confirmation. When the kubelet has stopped, its Node has its last report.
func (k *adoptedKubelet) NoteEvent(ctx context.Context, e protocol.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watched = true
	service, stopped := e.ServiceAction()
	if service != kubeletService {
		return
	}
	k.restarted = true
	if !stopped {
		return
	}
	if reported, err := k.readReport(ctx); err == nil {
		k.before = reported.ready.LastHeartbeatTime.Time
	}
}

// AwaitConfirmation implements hosts.Confirmation.
func (k *adoptedKubelet) AwaitConfirmation(ctx context.Context) error {
	k.mu.Lock()
	seen := observedKubelet{unrestarted: k.watched && !k.restarted, before: k.before, version: k.version}
	k.mu.Unlock()
	why := errKubeletSilent
	for {
		reported, err := k.readReport(ctx)
		switch {
		case err == nil:
			why = seen.judgeReport(reported, k.clock.Now())
		case ctx.Err() == nil:
			why = err
		}
		if why == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return why
		case <-k.clock.After(k.pause):
		}
	}
}

// kubeletReport is the last report of a kubelet.
type kubeletReport struct {
	// ready is the condition Ready of the Node; zero if it has none.
	ready corev1.NodeCondition
	// version is such as v1.36.3.
	version string
}

func (k *adoptedKubelet) readReport(ctx context.Context) (kubeletReport, error) {
	limited, stop := context.WithTimeout(ctx, readNodeWithin)
	defer stop()
	var node corev1.Node
	if err := k.live.Get(limited, client.ObjectKey{Name: k.node}, &node); err != nil {
		return kubeletReport{}, fmt.Errorf("reading the Node: %w", err)
	}
	reported := kubeletReport{version: node.Status.NodeInfo.KubeletVersion}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			reported.ready = c
		}
	}
	return reported, nil
}

// observedKubelet is what was seen of a kubelet since its change.
type observedKubelet struct {
	// version is that of the kubelet which should report; empty if that is not known.
	version string
	// unrestarted is true if the run has not restarted the kubelet.
	unrestarted bool
	// before is the time in the last report before the restart, zero if that is not known.
	before time.Time
	// isReady is true while the Node is seen Ready, since when by the operator's clock, with first as the time in the
	// report that was seen then.
	isReady      bool
	since, first time.Time
}

// judgeReport returns nil if what the Node has confirms the change, otherwise why it does not. Now is of a monotonic
// clock.
func (o *observedKubelet) judgeReport(report kubeletReport, now time.Time) error {
	ready := report.ready
	if ready.Status != corev1.ConditionTrue {
		o.isReady = false
		return fmt.Errorf("the Node is not Ready: %s",
			bundle.BoundedText(ready.Reason+": "+ready.Message, maxReadyText))
	}
	// A build of the same version may have more in its name: v1.36.3+1a2b3c4.
	if of, _, _ := strings.Cut(report.version, "+"); o.version != "" && of != o.version {
		o.isReady = false
		return fmt.Errorf("%w: the Node has kubelet %s, and the bundle %s", errKubeletSilent,
			bundle.BoundedText(report.version, maxReadyText), o.version)
	}
	reported := ready.LastHeartbeatTime.Time
	if !o.isReady {
		o.isReady, o.since, o.first = true, now, reported
	}
	switch {
	case o.unrestarted:
		return nil
	case !o.before.IsZero():
		if reported.Equal(o.before) {
			return errKubeletSilent
		}
		return nil
	case !reported.Equal(o.first), now.Sub(o.since) >= kubeletSteady:
		return nil
	}
	return errKubeletSilent
}
