package configure

import (
	"testing"

	"wmco/bundle"
	"wmco/controller/inputs/desired"
	"wmco/payload"
	"wmco/render"
)

func clusterOf(minor string) *desired.Hosts {
	h := &desired.Hosts{Cluster: render.Cluster{Settings: render.DefaultSettings()}}
	h.Cluster.Version = map[string]string{"1.35": "4.22.0", "1.36": "5.0.0"}[minor]
	return h
}

// TestExecutablesOfAMinorVersion: only those that the cluster's nodes get count, so that a release with another kubelet for other clusters
// changes no node.
func TestExecutablesOfAMinorVersion(t *testing.T) {
	set := func(old, now string) payload.Set {
		return payload.Set{Source: "payload", Built: []payload.Built{
			{Name: payload.For(payload.Kubelet, "1.35").Name, Digest: bundle.Of([]byte(old))},
			{Name: payload.For(payload.Kubelet, "1.36").Name, Digest: bundle.Of([]byte(now))},
			{Name: payload.Containerd, Digest: bundle.Of([]byte("containerd"))},
		}}
	}
	x := NewExecutables(set("old", "now"))
	if _, known := x.ChosenExecutables(); known {
		t.Error("it is known before the inputs are read")
	}
	signals := func() int {
		n := len(x.Changed)
		for range n {
			<-x.Changed
		}
		return n
	}
	first := x.ChooseFor(clusterOf("1.35"))
	if n := signals(); n != 1 {
		t.Errorf("%d signals for the first version", n)
	}
	if again := x.ChooseFor(clusterOf("1.35")); again != first || signals() != 0 {
		t.Errorf("the same version again: %s, not %s", again, first)
	}
	second := x.ChooseFor(clusterOf("1.36"))
	if got, known := x.ChosenExecutables(); second == first || !known || got.Digest != second || signals() != 1 {
		t.Errorf("another version: %s", got.Digest)
	}
	if other := NewExecutables(set("another patch release", "now")).ChooseFor(clusterOf("1.36")); other != second {
		t.Errorf("the kubelet of another minor version changes the executables of this one")
	}
	if none := NewExecutables(payload.Set{}).ChooseFor(clusterOf("1.36")); none != "" {
		t.Errorf("an operator without executables has %s", none)
	}
}
