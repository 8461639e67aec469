package csr

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"wmco/controller/csr/certificates"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode/record"
)

// TestTheFirstNameOfAnInstanceIsNoted before its certificate is approved: it gets none of another name, and no other host gets its name.
func TestTheFirstNameOfAnInstanceIsNoted(t *testing.T) {
	c := fake.NewFakeClient()
	a := &Approver{Records: &hosts.Records{Live: c, Client: c, Namespace: "n"}}
	host := func(address, name string) certificates.Host { return certificates.Host{Address: address, Name: name} }
	for range 2 { // it may ask again
		if err := a.reserveName(t.Context(), host("192.0.2.1", "win-1")); err != nil {
			t.Fatal(err)
		}
	}
	r, _, err := a.Records.Get(t.Context(), record.OfEntry("192.0.2.1"))
	if err != nil || r.Node != "win-1" {
		t.Errorf("the record has Node %q, %v", r.Node, err)
	}
	if err := a.reserveName(t.Context(), host("192.0.2.1", "win-2")); err == nil || !strings.Contains(err.Error(), "the host is node win-1") {
		t.Errorf("a second name: %v", err)
	}
	if err := a.reserveName(t.Context(), host("192.0.2.2", "win-1")); err == nil || !strings.Contains(err.Error(), "the name is that of") {
		t.Errorf("the name of another host: %v", err)
	}
}
