package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/protocol"
	"wmco/bundle"
)

// TestADependentStopsFirstWhateverItsName: sorted by name it would come last.
func TestADependentStopsFirstWhateverItsName(t *testing.T) {
	target := Target{Services: []WantedService{service("z", bundle.ImpactRestart)}}
	var order []bundle.EntryID
	for _, s := range Make(&target, observedServices(map[string][]string{"z": {"a"}, "a": nil}), Circumstances{}).Steps {
		if s.Verb == protocol.VerbStop {
			order = append(order, s.Entry)
		}
	}
	if diff := cmp.Diff([]bundle.EntryID{"service a", "service z"}, order); diff != "" {
		t.Errorf("order of the stops (-want +got):\n%s", diff)
	}
}

// TestASecretThatWasNotSentIsNotWhatWasNotRead: neither has a digest that could be compared.
func TestASecretThatWasNotSentIsNotWhatWasNotRead(t *testing.T) {
	const path = `C:\k\x`
	target := Target{Files: []WantedFile{{ID: bundle.KindFile.ID(path), Path: path, Kind: FileRegular, Digest: "hmac-sha256:00", Impact: bundle.ImpactNone}}}
	observed := observedServices(nil)
	observed.Files[bundle.FoldPath(path)] = ObservedFile{FileInfo: FileInfo{Path: path, Kind: FileRegular}}
	p := Make(&target, observed, Circumstances{})
	want := []protocol.Action{{Verb: protocol.VerbWrite, Entry: `file C:\k\x`, Reason: protocol.ReasonDiffers, Impact: bundle.ImpactNone}}
	if diff := cmp.Diff(want, p.ShownActions()); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]protocol.Missing{{Digest: "hmac-sha256:00"}}, p.Missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}
