package bundle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFactsKeepWhatWasKnown: each part that is unknown has what was known of it before, and the rest is new.
func TestFactsKeepWhatWasKnown(t *testing.T) {
	before := Facts{
		HostName: "before", Networks: []HNSNetwork{{Name: "n"}}, Endpoints: []HNSEndpoint{{Name: "e"}}, Features: []string{"f"}, PendingBoots: []BootReason{BootForFiles}, DefenderRunning: true,
	}
	for part, want := range map[FactPart]Facts{
		PartNetworks:     {Networks: before.Networks, Endpoints: before.Endpoints},
		PartFeatures:     {Features: before.Features},
		PartPendingBoots: {PendingBoots: before.PendingBoots},
		PartDefender:     {DefenderRunning: true},
		"exclusion":      {},
	} {
		now := Facts{HostName: "now"}.AddUnknown(UnknownFact{part, "it hangs"}, UnknownFact{part, "it hangs"})
		want.HostName, want.Unknown = "now", []UnknownFact{{part, "it hangs"}}
		got := now.KeepKnown(before)
		if diff := cmp.Diff(want, got); diff != "" || !got.IsUnknown(part) || got.ErrorOf(part) != "it hangs" || got.ErrorOf("another") != "" {
			t.Errorf("%s (-want +got):\n%s", part, diff)
		}
	}
	if diff := cmp.Diff(Facts{HostName: "now"}, Facts{HostName: "now"}.KeepKnown(before)); diff != "" {
		t.Errorf("nothing is unknown (-want +got):\n%s", diff)
	}
}
