package node

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/configure"
	"wmco/controller/hosts"
	"wmco/controller/inputs/desired"
	"wmco/controller/keys/signing"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/drain"
	"wmco/controller/windowsnode/record"
)

// removal is a drained node whose entry was removed.
type removal struct {
	client.Client
	t       *testing.T
	remover *remover
	keys    *signing.Keys
	record  record.Record
	elapsed time.Duration
	// reached is how often its host was reached over SSH, silence for how long its agent has been silent.
	reached int
	silence time.Duration
}

func newRemoval(t *testing.T, features ...published.Feature) *removal {
	t.Helper()
	m := &removal{t: t, record: record.Record{Entry: "192.0.2.1", Address: "192.0.2.1", Account: "Administrator", Node: "win-a", NodeUID: "uid-a"}}
	text, err := m.record.Encode()
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.NewTime(time.Now())
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "win-a", UID: "uid-a", Annotations: map[string]string{configure.VersionAnnotation: "v1", RemoveAnnotation: configure.ValueTrue}},
		Spec:       corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{{Key: windowsnode.RemovingTaint, Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: published.Condition, Status: corev1.ConditionTrue, LastHeartbeatTime: now},
		}},
	}
	m.Client = fake.NewFakeClient(node, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: record.ConfigMapName(m.record.ID()), UID: "uid-of-records"}, Data: map[string]string{string(m.record.ID()): text}})
	m.keys = &signing.Keys{Live: m, Client: m, Namespace: "n", Now: time.Now}
	if err := m.keys.BeginTerm(t.Context()); err != nil {
		t.Fatal(err)
	}
	layer := func(kind bundle.LayerKind) published.Layer {
		p, err := published.Pack(bundle.Layer{Schema: bundle.Schema, Kind: kind, Stage: bundle.StageJoined})
		if err != nil {
			t.Fatal(err)
		}
		return p.Layer
	}
	d := published.Desired{Cluster: layer(bundle.LayerCluster), Node: layer(bundle.LayerNode), MaxImpact: bundle.ImpactReboot, Namespace: "n"}
	if d.Bundle, err = bundle.DigestLayers(d.Cluster.Digest, d.Node.Digest); err != nil {
		t.Fatal(err)
	}
	signed, err := m.keys.SignDesired(published.NodeID{Name: "win-a", UID: "uid-a"}, d)
	if err != nil {
		t.Fatal(err)
	}
	m.annotate(published.DesiredAnnotation, signed)
	m.report(published.RemovalProgress{}, features...)
	away := unreachable(func() { m.reached++ })
	program, err := remote.FileProgram("controller.go") // it is never sent
	if err != nil {
		t.Fatal(err)
	}
	told := windowsnode.VerifyWith(m.keys.OpenDesired)
	joiner := &configure.Joiner{
		Client: m, Unjoined: &configure.Unjoined{}, Login: &hosts.Login{Live: m, Records: &hosts.Records{Live: m, Client: m, Namespace: "n"}},
		Hosts:       hosts.New(hosts.Options{Transports: hosts.Transports{Kept: away, Fresh: away}, Program: program}),
		Inputs:      func(context.Context) (*desired.Hosts, error) { return &desired.Hosts{}, nil },
		Elapsed:     func() time.Duration { return m.elapsed },
		Silence:     func(windowsnode.Node) time.Duration { return m.silence },
		ReadDesired: told,
	}
	m.remover = &remover{namespace: "n", drainer: drain.Drainer{Client: kubernetesfake.NewClientset()}, joiner: joiner,
		agents: agentRemovals{joiner: joiner, readDesired: told, signer: m.keys}}
	return m
}

func (m *removal) node() (corev1.Node, bool) {
	var node corev1.Node
	err := m.Get(m.t.Context(), client.ObjectKey{Name: "win-a"}, &node)
	if err != nil && !apierrors.IsNotFound(err) {
		m.t.Fatal(err)
	}
	return node, err == nil
}

func (m *removal) change(change func(*corev1.Node)) {
	m.t.Helper()
	node, _ := m.node()
	change(&node)
	status := node.Status
	err := m.Update(m.t.Context(), &node)
	node.Status = status
	if err := errors.Join(err, m.Status().Update(m.t.Context(), &node)); err != nil {
		m.t.Fatal(err)
	}
}

func (m *removal) annotate(key, value string) {
	m.change(func(n *corev1.Node) { n.Annotations[key] = value })
}

// report is what the agent of the node reports.
func (m *removal) report(p published.RemovalProgress, features ...published.Feature) {
	text, err := published.Report{Program: "test", State: published.StateApplied, Removal: p, Features: features}.Encode()
	if err != nil {
		m.t.Fatal(err)
	}
	m.annotate(published.ReportAnnotation, text)
}

// step does the next steps, and returns the last progress.
func (m *removal) step() (p configure.Progress) {
	m.t.Helper()
	for range 3 {
		node, ok := m.node()
		if !ok {
			return p
		}
		var err error
		if p, err = m.remover.continueRemoval(m.t.Context(), windowsnode.Decode(node), m.record); err != nil {
			m.t.Fatal(err)
		}
	}
	return p
}

// isTold reports whether the agent was told, signed, for its own Node.
func (m *removal) isTold() bool {
	node, _ := m.node()
	return m.remover.joiner.IsEnding(windowsnode.Decode(node))
}

// TestTheAgentRemovesItsHost: the Node is deleted after its report and not before, and no host is reached.
func TestTheAgentRemovesItsHost(t *testing.T) {
	m := newRemoval(t, published.FeatureRemove)
	if p := m.step(); !m.isTold() || p.Reason != reasonCleaning || m.reached > 0 {
		t.Fatalf("told %t, reached %d times: %+v", m.isTold(), m.reached, p)
	}
	node, _ := m.node()
	if node.Annotations[configure.VersionAnnotation] != "" {
		t.Error("it is a node still")
	}
	if d, err := published.DecodeDesired(node.Annotations[published.DesiredAnnotation]); err != nil || d.MaxImpact != bundle.ImpactNone || d.NodeUID != "uid-a" {
		t.Errorf("%+v, %v", d, err)
	}
	for name, p := range map[string]published.RemovalProgress{
		"nothing": {}, "begun": {Node: "uid-a"}, "done for another Node": {Node: "uid-b", Done: true}, "done for no Node": {Done: true},
	} {
		m.report(p, published.FeatureRemove)
		m.step()
		if _, ok := m.node(); !ok {
			t.Fatalf("%s: the Node is deleted", name)
		}
	}
	m.report(published.RemovalProgress{Node: "uid-a", Done: true})
	p := m.step()
	if _, ok := m.node(); ok || !p.Finished || p.Err != nil || m.reached > 0 {
		t.Errorf("reached %d times: %+v", m.reached, p)
	}
	if _, known, err := m.remover.joiner.Login.Records.GetRecord(t.Context(), m.record.ID()); known || err != nil {
		t.Errorf("its record is known %t, %v", known, err)
	}
}

// TestWhenAHostIsReachedOverSSH: where its agent cannot do it, does not answer, or takes too long.
func TestWhenAHostIsReachedOverSSH(t *testing.T) {
	for name, tt := range map[string]struct {
		features []published.Feature
		change   func(*removal)
		told     bool
		reached  bool
	}{
		"an agent that cannot do it":        {nil, func(*removal) {}, false, true},
		"a report of who has not been told": {nil, func(m *removal) { m.report(published.RemovalProgress{Node: "uid-a", Done: true}) }, false, true},
		"what others have written": {[]published.Feature{published.FeatureRemove}, func(m *removal) {
			m.annotate(published.DesiredAnnotation, `{"schema":1,"remove":true}`)
		}, false, true},
		"an operator that cannot sign": {[]published.Feature{published.FeatureRemove}, func(m *removal) {
			m.remover.agents.signer = &signing.Keys{}
			m.step()
			if m.reached > 0 {
				m.t.Error("it does not wait until it can")
			}
			m.elapsed += signLimit
		}, false, true},
		"a silent agent": {[]published.Feature{published.FeatureRemove}, func(m *removal) { m.silence = published.SilentAfter + time.Second }, true, true},
		"a host that is off": {[]published.Feature{published.FeatureRemove}, func(m *removal) {
			m.change(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
		}, true, true},
		"an agent that does not begin": {[]published.Feature{published.FeatureRemove}, func(m *removal) { m.step(); m.elapsed += agentLimit }, true, true},
		"an agent that has begun late": {[]published.Feature{published.FeatureRemove}, func(m *removal) {
			m.step()
			m.elapsed += agentLimit - time.Second
			m.report(published.RemovalProgress{Node: "uid-a"}, published.FeatureRemove)
			m.step()
			m.elapsed += agentLimit - time.Second
		}, true, false},
		"an agent that has begun, on a host whose kubelet does not run": {[]published.Feature{published.FeatureRemove}, func(m *removal) {
			m.step()
			m.report(published.RemovalProgress{Node: "uid-a"}, published.FeatureRemove)
			m.change(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
		}, true, false},
		"an agent that does not end": {[]published.Feature{published.FeatureRemove}, func(m *removal) {
			m.step()
			m.report(published.RemovalProgress{Node: "uid-a"}, published.FeatureRemove)
			m.step()
			m.elapsed += agentLimit
		}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newRemoval(t, tt.features...)
			tt.change(m)
			m.step()
			if _, ok := m.node(); !ok || m.isTold() != tt.told || m.reached > 0 != tt.reached {
				t.Errorf("told %t, reached %d times; the Node is there %t", m.isTold(), m.reached, ok)
			}
		})
	}
}

// TestWhyAnAgentCannotRemoveItsHost is reported, and a person may force the removal.
func TestWhyAnAgentCannotRemoveItsHost(t *testing.T) {
	m := newRemoval(t, published.FeatureRemove)
	m.step()
	m.report(published.RemovalProgress{Node: "uid-a", Message: "the file is open"}, published.FeatureRemove)
	if p := m.step(); p.State != configure.StateFailed || p.Message != "removing the instance: cleaning up 192.0.2.1: the file is open" || p.Fix == "" || m.reached > 0 {
		t.Fatalf("%+v", p)
	}
	m.annotate(RemoveAnnotation, removeForce)
	if p := m.step(); !p.Finished || p.Err == nil {
		t.Errorf("%+v", p)
	}
	if _, ok := m.node(); ok {
		t.Error("the Node is there")
	}
}

// TestAnEntryThatComesBackAfterTheAgentWasTold: the host is cleaned up, and keeps its record, with its pinned key. Before, nothing is told.
func TestAnEntryThatComesBackAfterTheAgentWasTold(t *testing.T) {
	add := func(m *removal) {
		m.annotate(RemoveAnnotation, "")
		if err := m.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: configure.InstancesName}, Data: map[string]string{"192.0.2.1": "username=Administrator"}}); err != nil {
			t.Fatal(err)
		}
	}
	before := newRemoval(t, published.FeatureRemove)
	add(before)
	if before.step(); before.isTold() || before.reached > 0 {
		t.Error("the host of an instance that has an entry is removed")
	}
	m := newRemoval(t, published.FeatureRemove)
	m.step()
	add(m)
	if p := m.step(); p.Reason != reasonCleaning || !m.isTold() {
		t.Errorf("%+v", p)
	}
	m.report(published.RemovalProgress{Node: "uid-a", Done: true})
	m.step()
	_, known, err := m.remover.joiner.Login.Records.GetRecord(t.Context(), m.record.ID())
	if _, ok := m.node(); ok || !known || err != nil {
		t.Errorf("the Node is there %t, its record %t, %v", ok, known, err)
	}
}
