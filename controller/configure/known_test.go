package configure

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle/published"
	"wmco/controller/hosts"
	"wmco/controller/keys"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// TestAnAdoptedNodeGetsTheMarksOfOthers when it has the operator's own agent, once.
func TestAnAdoptedNodeGetsTheMarksOfOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*record.Record)
		node   func(*corev1.Node)
		marked bool
	}{
		"it has none":            {func(*record.Record) {}, func(*corev1.Node) {}, true},
		"the operator joined it": {func(r *record.Record) { r.Origin = record.OriginJoined }, func(*corev1.Node) {}, false},
		"it is being adopted":    {func(r *record.Record) { r.Adopting = true }, func(*corev1.Node) {}, false},
		"it has all": {func(*record.Record) {}, func(n *corev1.Node) {
			n.Annotations[hosts.PinAnnotation], n.Annotations[keys.HashAnnotation], n.Annotations[InstanceAnnotation] = "a", "b", "c"
		}, false},
		"it has not the entry": {func(*record.Record) {}, func(n *corev1.Node) {
			n.Annotations[hosts.PinAnnotation], n.Annotations[keys.HashAnnotation] = "a", "b"
		}, true},
		"it has no key": {func(*record.Record) {}, func(n *corev1.Node) {
			n.Annotations[hosts.PinAnnotation], n.Annotations[InstanceAnnotation] = "a", "b"
		}, true},
	} {
		s := newScene(t)
		s.isNode(annotated(VersionAnnotation, "10"), annotated(published.AdoptAnnotation, published.AdoptTrue), tt.node)
		r := s.recordOf(hostA, "win-a", keyA)
		r.Origin = record.OriginAdopted
		tt.change(&r)
		s.addRecord(r)
		if p := s.join(hostA); p.State != StateJoined {
			t.Errorf("%s: %+v", name, p)
		}
		n := s.node("win-a")
		marked := n.Annotations[InstanceAnnotation] == hostA && n.Annotations[keys.HashAnnotation] == keys.HashPublicKey(s.publicKey()) &&
			n.Annotations[published.AdoptAnnotation] == ""
		if marked != tt.marked {
			t.Errorf("%s: %v", name, n.Annotations)
		}
	}
}

// TestWhatIsWrittenIsReadAgain where another client changed the Node, or the API server fails.
func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	conflict := apierrors.NewConflict(corev1.Resource("nodes"), "win-a", errAPIServer)
	for name, tt := range map[string]struct {
		scene func(*scene)
		fails string
		err   error
	}{
		"labels":        {func(*scene) {}, "patch win-a", conflict},
		"the last mark": {func(s *scene) { s.join(hostA); s.publish(s.applied()) }, "patch win-a", conflict},
		"marks of adoption": {func(s *scene) {
			markJoined(s)
			r := s.recordOf(hostA, "win-a", keyA)
			r.Origin = record.OriginAdopted
			s.addRecord(r)
		}, "patch win-a", conflict},
		"the Node":      {func(*scene) {}, "get win-a", errAPIServer},
		"the Secret":    {func(*scene) {}, "get " + keys.SecretName, errAPIServer},
		"what was kept": {func(*scene) {}, "get " + rejoiningName, errAPIServer},
		"the record's write": {func(s *scene) {
			s.host(hostA).Username = ""
			r := s.recordOf(hostA, "win-a", keyA)
			r.Resolved = ""
			s.addRecord(r)
		}, "patch " + record.ConfigMapName(hostA), errAPIServer},
	} {
		s := newScene(t)
		s.isNode(ready)
		tt.scene(s)
		s.fails[tt.fails] = tt.err
		_, err := s.joiner.JoinHost(t.Context(), Ref{Address: hostA})
		if err == nil || len(s.counted.failures) > 0 {
			t.Errorf("%s: %v, counted %v", name, err, s.counted.failures)
		}
	}
}

// markJoined has the Node be one that has joined.
func markJoined(s *scene) {
	n := s.node("win-a")
	n.Annotations = map[string]string{VersionAnnotation: "10"}
	s.updateNode(n)
}

// TestANodeIsNotMarkedWithoutAKey: a Secret that cannot be used is no evidence about the host.
func TestANodeIsNotMarkedWithoutAKey(t *testing.T) {
	s := newScene(t)
	s.isNode()
	must(t, s.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: keys.SecretName}}))
	p := s.join(hostA)
	if n := s.node("win-a"); p.State != StateWaiting || p.Reason != "PrivateKeyMissing" || len(n.Annotations) > 0 || n.Spec.Unschedulable {
		t.Errorf("%s, %v", described(p), n.Annotations)
	}
}

// TestWhatIsKnownOfAHostIsKept in its record while it is a Node.
func TestWhatIsKnownOfAHostIsKept(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(*record.Record)
		// node is what differs in the inputs.
		node func(*render.Node)
		want func(*record.Record)
	}{
		"nothing new":                     {func(*record.Record) {}, func(*render.Node) {}, func(*record.Record) {}},
		"a new account before a login":    {func(*record.Record) {}, func(n *render.Node) { n.Username = "other" }, func(*record.Record) {}},
		"a record without an account":     {func(r *record.Record) { r.Account = "" }, func(*render.Node) {}, func(*record.Record) {}},
		"a record without its resolution": {func(r *record.Record) { r.Resolved = "" }, func(*render.Node) {}, func(*record.Record) {}},
		"a record with another address":   {func(r *record.Record) { r.Address = hostB }, func(*render.Node) {}, func(*record.Record) {}},
		"a record that was removed": {
			func(r *record.Record) { r.Node, r.Address = "", hostB }, func(*render.Node) {}, func(r *record.Record) { r.Node, r.Address = "", hostB },
		},
	} {
		s := newScene(t)
		s.isNode(annotated(VersionAnnotation, "10"))
		r := s.recordOf(hostA, "win-a", keyA)
		tt.before(&r)
		s.addRecord(r)
		tt.node(s.host(hostA))
		want := s.recordOf(hostA, "win-a", keyA)
		tt.want(&want)
		want.Schema = record.Schema
		s.join(hostA)
		if diff := cmp.Diff(want, s.record(record.OfEntry(hostA))); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// TestAResolverThatDoesNotAnswerSaysNothing about the addresses of an entry, which stay in its record.
func TestAResolverThatDoesNotAnswerSaysNothing(t *testing.T) {
	const entry = "win-a.example.com"
	for resolved, want := range map[string]string{"": hostA, hostB: hostB} {
		s := newScene(t)
		s.isNode(annotated(VersionAnnotation, "10"))
		s.renameEntry(entry, resolved)
		s.host(entry).Name = "win-a"
		if resolved == "" {
			s.host(entry).Addresses = nil
		}
		r := s.recordOf(entry, "win-a", keyA)
		r.Resolved, r.Address = hostA, hostB // the address differs, so that the record is written
		s.addRecord(r)
		s.join(entry)
		if r := s.record(record.OfEntry(entry)); r.Resolved != want || r.Address != entry {
			t.Errorf("%q: %+v", resolved, r)
		}
	}
}
