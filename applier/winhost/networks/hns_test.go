package networks

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"testing"

	"wmco/applier/plan"
	"wmco/applier/winhost/keepertest"
	"wmco/bundle"
)

// fakeHNS behaves like HNS.
type fakeHNS struct {
	nets      []network
	ends      []endpoint
	writes    int
	interrupt error
}

func (f *fakeHNS) listNetworks() ([]network, error) { return slices.Clone(f.nets), nil }

func (f *fakeHNS) deleteNetwork(id string) error {
	f.writes++
	f.nets = slices.DeleteFunc(f.nets, func(n network) bool { return n.ID == id })
	return nil
}

func (f *fakeHNS) listEndpoints() ([]endpoint, error) { return slices.Clone(f.ends), nil }

func (f *fakeHNS) createEndpoint(name, network string) (string, error) {
	f.writes++
	id := strconv.Itoa(f.writes)
	for _, n := range f.nets {
		if n.ID == network {
			f.ends = append(f.ends, endpoint{HNSEndpoint: bundle.HNSEndpoint{Name: name, Network: n.Name}, ID: id})
			return id, f.interrupt
		}
	}
	return "", errors.New("no network " + network)
}

func (f *fakeHNS) attachEndpoint(_ context.Context, endpoint string, compartment int) error {
	f.writes++
	for i := range f.ends {
		if f.ends[i].ID == endpoint {
			f.ends[i].Compartment = compartment
			return nil
		}
	}
	return errors.New("no endpoint " + endpoint)
}

func (f *fakeHNS) deleteEndpoint(id string) error {
	f.writes++
	f.ends = slices.DeleteFunc(f.ends, func(e endpoint) bool { return e.ID == id })
	return nil
}

func newHNS() *fakeHNS {
	named := func(id, name string) network { return network{ID: id, HNSNetwork: bundle.HNSNetwork{Name: name}} }
	return &fakeHNS{
		nets: []network{named("id-1", "base"), named("id-2", "overlay")},
		ends: []endpoint{{ID: "pod", HNSEndpoint: bundle.HNSEndpoint{Name: "of a pod", Network: "overlay"}, Compartment: 3}},
	}
}

func TestEndpoints(t *testing.T) {
	f := newHNS()
	keepertest.CheckLifecycle(t, endpointKeeper{f, f}, &f.writes, "VIPEndpoint", "overlay/1", "base/1")
	if len(f.ends) != 1 || f.ends[0].ID != "pod" {
		t.Errorf("left: %+v", f.ends)
	}
}

func TestAnInterruptedEndpointIsAttached(t *testing.T) {
	f := newHNS()
	f.interrupt = errors.New("interrupted")
	wanted := plan.Setting{Name: "VIPEndpoint", Value: "overlay/1", Present: true}
	if err := (endpointKeeper{f, f}).Write(t.Context(), wanted); !errors.Is(err, f.interrupt) {
		t.Fatal(err)
	}
	keepertest.CheckRead(t, endpointKeeper{f, f}, wanted.Name, plan.Setting{Value: "overlay/0", Present: true})
	if err := (endpointKeeper{f, f}).Write(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	keepertest.CheckRead(t, endpointKeeper{f, f}, wanted.Name, plan.Setting{Value: "overlay/1", Present: true})
}

func TestInvalidEndpointsAreRefused(t *testing.T) {
	f := newHNS()
	tests := map[string]error{"none/1": errNoNetwork, "overlay": nil, "overlay/": nil, "overlay/0": nil, "/1": nil, "": nil}
	for value, want := range tests {
		err := endpointKeeper{f, f}.Write(t.Context(), plan.Setting{Name: "x", Value: value, Present: true})
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%q: %v", value, err)
		}
	}
	if f.writes != 0 {
		t.Errorf("%d changes", f.writes)
	}
}

func TestNetworksAreRemovedAndNeverCreated(t *testing.T) {
	f := newHNS()
	keepertest.CheckRead(t, networkKeeper{f}, "overlay", plan.Setting{Present: true})
	if err := (networkKeeper{f}).Write(t.Context(), plan.Setting{Name: "overlay", Present: true}); err == nil {
		t.Error("a network was created")
	}
	for range 2 {
		if err := (networkKeeper{f}).Write(t.Context(), plan.Setting{Name: "overlay"}); err != nil {
			t.Fatal(err)
		}
		keepertest.CheckRead(t, networkKeeper{f}, "overlay", plan.Setting{})
	}
	keepertest.CheckRead(t, networkKeeper{f}, "base", plan.Setting{Present: true})
}

func TestCompartmentOf(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("10.132.0.2")}
	tests := map[string]struct {
		address string
		named   uint32
		want    int
	}{
		"an address of the host's own adapters": {"10.132.0.2", 0, 1},
		"an address of a container":             {"10.132.0.9", 4, 4},
		"not attached":                          {"10.132.0.9", 0, 0},
		"without an address":                    {"", 0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := compartmentOf(tt.address, tt.named, own); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}
