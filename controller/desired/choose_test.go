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
		{"an unknown host", []string{"192.0.2.1"}, 2, nil, "no Windows host of the inputs has this name or address: 192.0.2.1; the inputs have win-a, 10.0.0.2"},
		{"two names of one host", []string{"10.0.0.1", "win-a"}, 2, nil, "10.0.0.1 and win-a are the same host, win-a"},
	} {
		h := exampleHosts()
		nodes, err := h.Assign(tt.hosts, h.All[:tt.chosen])
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
	if _, err := h.Assign([]string{"win-a"}, h.All); err != nil {
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
	if _, err := h.Only(); !errors.Is(err, ErrSeveral) {
		t.Errorf("one of two: %v", err)
	}
	if _, err := h.Node("win-z"); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown name: %v", err)
	}
	if _, err := (&Hosts{}).Every(); err == nil {
		t.Error("no host is no error")
	}
	h.Findings[0].Severity = bundle.SeverityError // which may be why
	if nodes, err := h.Instance("192.0.2.1"); err != nil || len(nodes) != 0 {
		t.Errorf("in refused inputs: %v, %v", nodes, err)
	}
}
