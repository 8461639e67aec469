package render

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

// Keys of which there is no private half.
const (
	oldKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	newKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB"
)

// TestAuthorizedKeysOfAHost: a new key is added beside the one that the host is known to accept, which is removed when that is the new one. Without
// a key nothing is withdrawn, and neither a host that joins, nor one of which nothing is known, nor an older agent gets any.
func TestAuthorizedKeysOfAHost(t *testing.T) {
	for name, c := range map[string]struct {
		present, accepted string
		change            func(*Node)
		want              []string
	}{
		"a preview":                           {},
		"nothing is known of the host":        {present: newKey},
		"the host accepts the present key":    {present: newKey, accepted: newKey, want: []string{newKey}},
		"the host accepts an earlier key":     {present: newKey, accepted: oldKey, want: []string{newKey, oldKey}},
		"the present key cannot be used":      {accepted: oldKey, want: []string{oldKey}},
		"the agent reads no keys":             {present: newKey, accepted: oldKey, change: func(n *Node) { n.NoKeys = true }},
		"the agent is older still":            {present: newKey, accepted: oldKey, change: func(n *Node) { n.OlderAgent = true }},
		"the host has no Node yet":            {present: newKey, accepted: oldKey, change: func(n *Node) { n.Name = "" }},
		"another node of the cluster is kept": {present: newKey, accepted: oldKey, change: func(n *Node) { n.Name = "win-b" }, want: []string{newKey, oldKey}},
	} {
		fleet, findings, err := NewFleet(testCluster(bundle.PlatformNone), Options{LoginKey: c.present})
		if err != nil || fleet == nil {
			t.Fatalf("%v %+v", err, findings)
		}
		n := testNode()
		n.AcceptedKey = c.accepted
		if c.change != nil {
			c.change(&n)
		}
		b, findings, err := fleet.Node(n)
		if err != nil || findings.Refused() {
			t.Fatalf("%s: %v %+v", name, err, findings)
		}
		var got []string
		for _, k := range b.Node.AuthorizedKeys {
			got = append(got, k.Line)
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, got); diff != "" || len(b.Cluster.AuthorizedKeys) > 0 {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if err := b.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	fleet, _, err := NewFleet(testCluster(bundle.PlatformNone), Options{LoginKey: "no key"})
	if err != nil {
		t.Fatal(err)
	}
	n := testNode()
	n.AcceptedKey = oldKey
	if _, _, err := fleet.Node(n); err == nil {
		t.Error("a text that is no key was rendered")
	}
}
