package desired

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/render"
)

func exampleHosts() *Hosts {
	return &Hosts{
		All: []render.Node{{Name: "win-a", Address: "10.0.0.1", Addresses: []string{"10.0.0.1", "fd00::1"}, HostNames: []string{"WIN-A"}}, {Address: "10.0.0.2"}},
		Findings: bundle.Findings{
			{Severity: bundle.SeverityWarning, Reason: "AboutTheCluster"}, {Severity: bundle.SeverityWarning, Reason: "AboutA", Node: "win-a"},
			{Severity: bundle.SeverityWarning, Reason: "AboutB", Node: "10.0.0.2"},
		},
	}
}

func TestAssign(t *testing.T) {
	for _, tt := range []struct {
		name   string
		hosts  []string
		chosen int
		want   []string
		err    string
	}{
		{"by address and name", []string{"10.0.0.2", "win-a"}, 2, []string{"10.0.0.2", "win-a"}, ""},
		{"by another address", []string{"fd00::1"}, 2, []string{"win-a"}, ""},
		{"by host name", []string{"win-a"}, 2, []string{"win-a"}, ""},
		{"one host and one node", []string{"192.0.2.1"}, 1, []string{"win-a"}, ""},
		{"by its short name", []string{"WIN-C"}, 3, []string{"win-c.example.com"}, ""},
		{"by the short name of two", []string{"win-c"}, 4, nil, "this is the short name of several Windows hosts: win-c is win-c.example.com, win-c.example.org"},
		{"by the name that is the short one of another", []string{"win-a"}, 5, []string{"win-a"}, ""},
		{"by a part of an address", []string{"10"}, 2, nil, "no Windows host of the inputs has this name or address: 10; the inputs have win-a, 10.0.0.2"},
		{"an unknown host", []string{"192.0.2.1"}, 2, nil, "no Windows host of the inputs has this name or address: 192.0.2.1; the inputs have win-a, 10.0.0.2"},
		{"two names of one host", []string{"10.0.0.1", "win-a"}, 2, nil, "10.0.0.1 and win-a are the same host, win-a"},
	} {
		h := exampleHosts()
		h.All = append(h.All, render.Node{Name: "win-c.example.com"}, render.Node{Address: "win-c.example.org"}, render.Node{Name: "win-a.example.com"})
		nodes, err := h.AssignToNodes(tt.hosts, h.All[:tt.chosen])
		var got []string
		for _, n := range nodes {
			got = append(got, n.ID())
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || text != tt.err {
			t.Errorf("%s: error %q, want %q (-want +got):\n%s", tt.name, text, tt.err, diff)
		}
	}
}

func TestAssignDropsWarningsAboutOtherHosts(t *testing.T) {
	h := exampleHosts()
	if _, err := h.AssignToNodes([]string{"win-a"}, h.All); err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, f := range h.Findings {
		reasons = append(reasons, f.Reason)
	}
	if diff := cmp.Diff([]string{"AboutTheCluster", "AboutA"}, reasons); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestAChoiceThatFitsNoHost(t *testing.T) {
	h := exampleHosts()
	if _, err := h.SelectOnlyHost(); !errors.Is(err, ErrSeveral) {
		t.Errorf("one of two: %v", err)
	}
	if _, err := h.SelectByNode("win-z"); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown name: %v", err)
	}
	if _, err := h.SelectNamed([]string{"10.0.0.2", "win-y", "win-z"}); err == nil || err.Error() != "no Windows host of the inputs has this name or address: win-y, win-z; the inputs have win-a, 10.0.0.2" {
		t.Errorf("two unknown names: %v", err)
	}
	if _, err := (&Hosts{}).SelectAll(); err == nil {
		t.Error("no host is no error")
	}
	h.Findings[0].Severity = bundle.SeverityError // which may be why
	if nodes, err := h.SelectByAddress("192.0.2.1"); err != nil || len(nodes) != 0 {
		t.Errorf("in refused inputs: %v, %v", nodes, err)
	}
}

func TestHostsAreFoundByTheirNames(t *testing.T) {
	h := exampleHosts()
	h.All = append(h.All, render.Node{Name: "win-c.example.com", HostNames: []string{"ec2-7.internal"}})
	for _, name := range []string{"win-c.example.com", "win-c", "ec2-7"} {
		if nodes, err := h.SelectByNode(name); err != nil || len(nodes) != 1 || nodes[0].Name != "win-c.example.com" {
			t.Errorf("%s: %v, %v", name, nodes, err)
		}
	}
	nodes, err := h.SelectNamed([]string{"win-c.example.com", "10.0.0.1"})
	if err != nil || joinNames(nodes) != "win-a, win-c.example.com" {
		t.Errorf("%s, %v", joinNames(nodes), err)
	}
}
