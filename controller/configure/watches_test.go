package configure

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"wmco/bundle/published"
	"wmco/controller/windowsnode/record"
)

// TestWhichNodesHaveAHostTriedAgain: those that have not joined, those whose adoption is asked for when they change, and those that are deleted.
func TestWhichNodesHaveAHostTriedAgain(t *testing.T) {
	const joined, asked = "it has joined", "its adoption is asked for"
	nodes := map[string]*corev1.Node{
		"it is new": {},
		"it joins":  {ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{VersionAnnotation: "1", JoiningAnnotation: ValueTrue}}},
		joined:      {ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{VersionAnnotation: "1"}}},
		asked: {
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{VersionAnnotation: "1", published.AdoptAnnotation: published.AdoptTrue}},
		},
		"it was adopted before": {
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
				VersionAnnotation: "1", published.AdoptAnnotation: published.AdoptTrue, published.DesiredAnnotation: "{}",
			}},
		},
	}
	p := UnjoinedNodes()
	for name, want := range map[string]struct{ exists, changed bool }{
		"it is new": {true, true}, "it joins": {true, true}, joined: {false, false}, asked: {true, true}, "it was adopted before": {false, false},
	} {
		n := nodes[name]
		if got := p.Create(event.TypedCreateEvent[*corev1.Node]{Object: n}); got != want.exists {
			t.Errorf("%s, and exists: %t", name, got)
		}
		if got := p.Update(event.TypedUpdateEvent[*corev1.Node]{ObjectOld: nodes[joined], ObjectNew: n}); got != want.changed {
			t.Errorf("%s since now: %t", name, got)
		}
		if !p.Delete(event.TypedDeleteEvent[*corev1.Node]{Object: n}) {
			t.Errorf("%s, and is deleted: false", name)
		}
	}
	heartbeat := nodes[asked].DeepCopy()
	heartbeat.ResourceVersion = "2"
	if p.Update(event.TypedUpdateEvent[*corev1.Node]{ObjectOld: nodes[asked], ObjectNew: heartbeat}) {
		t.Error("a heartbeat of a Node whose adoption is asked for")
	}
}

// TestTheRecordOfANode is that of the host which is or was the Node of its name.
func TestTheRecordOfANode(t *testing.T) {
	s := newScene(t)
	s.addRecord(s.recordOf(hostA, "win-a", keyA))
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a", UID: "another"}}
	if r := s.joiner.RecordOfNode(t.Context(), n); r.Entry != hostA {
		t.Errorf("%+v", r)
	}
	n.Name = "win-b"
	if r := s.joiner.RecordOfNode(t.Context(), n); r != (record.Record{}) {
		t.Errorf("of another name: %+v", r)
	}
	n.Name, s.fails["list"] = "win-a", errAPIServer
	if r := s.joiner.RecordOfNode(t.Context(), n); r != (record.Record{}) {
		t.Errorf("without a cache: %+v", r)
	}
}
