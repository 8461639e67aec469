package hosts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

// TestOfFactsTheNamesAreKept: a host that lies takes no memory of the operator after it was asked.
func TestOfFactsTheNamesAreKept(t *testing.T) {
	all := bundle.Facts{Schema: 1, HostName: "win-a", DNSSuffix: "example.com", MetadataName: "ip-10-0-0-5", OSBuild: strings.Repeat("1", 8<<20), Features: make([]string, 10_000)}
	want := bundle.Facts{Schema: 1, HostName: "win-a", DNSSuffix: "example.com", MetadataName: "ip-10-0-0-5"}
	if diff := cmp.Diff(want, onlyNames(all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	all.DNSSuffix = strings.Repeat("x", longestName)
	if got := onlyNames(all); got.HostName+got.DNSSuffix != "" {
		t.Errorf("names of %d bytes are kept", len(got.DNSSuffix))
	}
}
