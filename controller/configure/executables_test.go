package configure

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"wmco/bundle"
	"wmco/controller/hosts"
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

// fetchingHost is a host of a cluster whose settings say where executables come from, and whether the operator's image is known.
func fetchingHost(t *testing.T, from render.ExecutablesFrom, listed bool) Host {
	t.Helper()
	h, err := exampleCluster("none-payload")()
	must(t, err)
	wanted := *h
	wanted.Cluster.Settings.Executables.From, wanted.Cluster.Settings.Rollout.FetchNodes = from, 2
	if !listed {
		wanted = *clusterOf("1.36")
		wanted.Cluster.Settings.Executables.From = from
	}
	return Host{Joiner: &Joiner{Executables: NewExecutables(payload.Set{}), Log: logr.Discard()}, Wanted: &wanted}
}

// TestHowHostsGetExecutables: from the image where it is known, and by SSH where that fails and may be.
func TestHowHostsGetExecutables(t *testing.T) {
	for _, tt := range []struct {
		from            render.ExecutablesFrom
		listed          bool
		fetches, copies bool
	}{
		{render.ExecutablesFromAny, true, true, true},
		{render.ExecutablesFromAny, false, false, true},
		{render.ExecutablesFromSSH, true, false, true},
		{render.ExecutablesFromRegistry, true, true, false},
		{render.ExecutablesFromRegistry, false, true, false},
	} {
		told := ""
		f := fetchingHost(t, tt.from, tt.listed).fetchExecutables(func(why string) { told = why })
		if (f != nil) != tt.fetches {
			t.Errorf("%+v: %v", tt, f)
		}
		if f == nil {
			continue
		}
		err := f.Failed("no place has it")
		p := Progress{}
		if err != nil {
			p = ProgressOfError(err)
		}
		if tt.copies != (err == nil) || tt.copies != (told == "no place has it") || !tt.copies && (p.Reason != ReasonNotFetched || p.State != StateFailed || !strings.Contains(p.DisplayText(), "no place has it; fix: ")) {
			t.Errorf("%+v: %v, told %q, %+v", tt, err, told, p)
		}
	}
}

// TestFewHostsFetchAtOnce: those without a node agent and nodes count together.
func TestFewHostsFetchAtOnce(t *testing.T) {
	h := fetchingHost(t, render.ExecutablesFromAny, true)
	nodes := 1
	h.Executables.CountNodes = func(context.Context) (int, error) { return nodes, nil }
	begin := h.fetchExecutables(nil).Begin
	end, err := begin(t.Context())
	must(t, err)
	if _, err := begin(t.Context()); !hosts.IsHostBusy(err) {
		t.Errorf("a third one: %v", err)
	}
	if n := h.Executables.CountHosts(); n != 1 {
		t.Errorf("%d hosts fetch", n)
	}
	end()
	end, err = begin(t.Context())
	must(t, err)
	end()
	h.Executables.CountNodes = func(context.Context) (int, error) { return 0, io.ErrUnexpectedEOF }
	if _, err := begin(t.Context()); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("without a list of nodes: %v", err)
	}
}

// TestWhatAHostIsToldToFetch: the executables of its bundle alone, with the proxy and the CAs that it does not have yet.
func TestWhatAHostIsToldToFetch(t *testing.T) {
	wanted := fetchingHost(t, render.ExecutablesFromAny, true).Wanted
	wanted.Cluster.Proxy = render.Proxy{HTTP: bundle.NewSecret("http://a"), HTTPS: bundle.NewSecret("http://b"), NoProxy: "c"}
	wanted.Cluster.TrustedCAs, wanted.Cluster.RegistryCAs = "of the proxy", []render.RegistryCA{{Registry: "r", PEM: "of r"}}
	all := wanted.ExecutableSources()
	x := all.Executables[1]
	order, ok := wanted.FetchOrder(map[bundle.Digest]bool{x.Raw.Digest: true})
	if !ok || len(order.List.Executables) != 1 || order.List.Executables[0] != x || len(order.List.Places) != len(all.Places) || order.TrustedCAs != "of the proxy\nof r" ||
		order.Proxy.HTTP.Reveal() != "http://a" || order.Proxy.HTTPS.Reveal() != "http://b" || order.Proxy.NoProxy != "c" {
		t.Errorf("%t, %+v", ok, order)
	}
	if len(wanted.ExecutableSources().Executables) != len(all.Executables) {
		t.Error("the list of the cluster has changed")
	}
	if _, ok := wanted.FetchOrder(map[bundle.Digest]bool{bundle.Of(nil): true}); ok {
		t.Error("an order for an executable that the image lacks")
	}
	if _, ok := clusterOf("1.36").FetchOrder(map[bundle.Digest]bool{x.Raw.Digest: true}); ok {
		t.Error("an order without an image")
	}
}
