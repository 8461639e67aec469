package hosts

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"wmco/controller/windowsnode/record"
)

// TestTheFirstNameOfAnInstanceIsNoted before its certificate is approved: it gets none of another name, and no other host gets its name.
func TestTheFirstNameOfAnInstanceIsNoted(t *testing.T) {
	c := fake.NewFakeClient()
	records := &Records{Live: c, Client: c, Namespace: "n"}
	for range 2 { // it may ask again
		if err := records.ReserveName(t.Context(), "192.0.2.1", "win-1"); err != nil {
			t.Fatal(err)
		}
	}
	r, _, err := records.GetRecord(t.Context(), record.OfEntry("192.0.2.1"))
	if err != nil || r.Node != "win-1" {
		t.Errorf("the record has Node %q, %v", r.Node, err)
	}
	if err := records.ReserveName(t.Context(), "192.0.2.1", "win-2"); err == nil || !strings.Contains(err.Error(), "the host is node win-1") {
		t.Errorf("a second name: %v", err)
	}
	if err := records.ReserveName(t.Context(), "192.0.2.2", "win-1"); err == nil || !strings.Contains(err.Error(), "the name is that of") {
		t.Errorf("the name of another host: %v", err)
	}
}

// TestANodeThatCameWhileAHostWasAskedKeepsItsName: the Nodes were listed before the host was asked, and it may take its time to answer.
func TestANodeThatCameWhileAHostWasAskedKeepsItsName(t *testing.T) {
	c := fake.NewFakeClient(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-5"}})
	records := &Records{Live: c, Client: c, Namespace: "n"}
	err := records.ReserveName(t.Context(), "192.0.2.1", "worker-5")
	if err == nil || !strings.Contains(err.Error(), "a Node of this name exists") {
		t.Errorf("%v", err)
	}
	if _, known, err := records.GetRecord(t.Context(), record.OfEntry("192.0.2.1")); known || err != nil {
		t.Errorf("the host has a record: %v", err)
	}
}
