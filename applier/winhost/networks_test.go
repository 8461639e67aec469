package winhost

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"testing"

	"wmco/applier"
	"wmco/bundle"
)

// fakeHNS does as the Host Networking Service: endpoints live on networks and go with them.
type fakeHNS struct {
	nets   []hnsNetwork
	ends   []hnsEndpoint
	writes int
	cut    error
}

func (f *fakeHNS) networks() ([]hnsNetwork, error) { return slices.Clone(f.nets), nil }

func (f *fakeHNS) deleteNetwork(id string) error {
	f.writes++
	f.nets = slices.DeleteFunc(f.nets, func(n hnsNetwork) bool { return n.ID == id })
	return nil
}

func (f *fakeHNS) endpoints() ([]hnsEndpoint, error) { return slices.Clone(f.ends), nil }

func (f *fakeHNS) createEndpoint(name, network string) (string, error) {
	f.writes++
	id := strconv.Itoa(f.writes)
	for _, n := range f.nets {
		if n.ID == network {
			f.ends = append(f.ends, hnsEndpoint{HNSEndpoint: bundle.HNSEndpoint{Name: name, Network: n.Name}, ID: id})
			return id, f.cut
		}
	}
	return "", errors.New("no network " + network)
}

func (f *fakeHNS) attach(_ context.Context, endpoint string, compartment int) error {
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
	f.ends = slices.DeleteFunc(f.ends, func(e hnsEndpoint) bool { return e.ID == id })
	return nil
}

func newHNS() *fakeHNS {
	network := func(id, name string) hnsNetwork { return hnsNetwork{ID: id, HNSNetwork: bundle.HNSNetwork{Name: name}} }
	return &fakeHNS{
		nets: []hnsNetwork{network("id-1", "base"), network("id-2", "overlay")},
		ends: []hnsEndpoint{{ID: "pod", HNSEndpoint: bundle.HNSEndpoint{Name: "of a pod", Network: "overlay"}, Compartment: 3}},
	}
}

func TestEndpoints(t *testing.T) {
	f := newHNS()
	lives(t, endpoints{f, f}, &f.writes, "VIPEndpoint", "overlay/1", "base/1")
	if len(f.ends) != 1 || f.ends[0].ID != "pod" {
		t.Errorf("left are %+v", f.ends)
	}
}

func TestAnEndpointThatWasCutIsAttached(t *testing.T) {
	f := newHNS()
	f.cut = errors.New("cut")
	wanted := applier.Setting{Name: "VIPEndpoint", Value: "overlay/1", Present: true}
	if err := (endpoints{f, f}).write(t.Context(), wanted); !errors.Is(err, f.cut) {
		t.Fatal(err)
	}
	now(t, endpoints{f, f}, wanted.Name, applier.Setting{Value: "overlay/0", Present: true})
	if err := (endpoints{f, f}).write(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	now(t, endpoints{f, f}, wanted.Name, applier.Setting{Value: "overlay/1", Present: true})
}

func TestEndpointsThatCannotBeMade(t *testing.T) {
	f := newHNS()
	tests := map[string]error{"none/1": errNoNetwork, "overlay": nil, "overlay/": nil, "overlay/0": nil, "/1": nil, "": nil}
	for value, want := range tests {
		err := endpoints{f, f}.write(t.Context(), applier.Setting{Name: "x", Value: value, Present: true})
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%q: %v", value, err)
		}
	}
	if f.writes != 0 {
		t.Errorf("%d changes", f.writes)
	}
}

func TestNetworksAreRemovedAndNeverMade(t *testing.T) {
	f := newHNS()
	now(t, networks{f}, "overlay", applier.Setting{Present: true})
	if err := (networks{f}).write(t.Context(), applier.Setting{Name: "overlay", Present: true}); err == nil {
		t.Error("a network was made")
	}
	for range 2 {
		if err := (networks{f}).write(t.Context(), applier.Setting{Name: "overlay"}); err != nil {
			t.Fatal(err)
		}
		now(t, networks{f}, "overlay", applier.Setting{})
	}
	now(t, networks{f}, "base", applier.Setting{Present: true})
}

func TestCompartmentOf(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("10.132.0.2")}
	tests := map[string]struct {
		address string
		named   uint32
		want    int
	}{
		"an address of the host's own adapters": {"10.132.0.2", 0, 1},
		"a container's":                         {"10.132.0.9", 4, 4},
		"attached nowhere":                      {"10.132.0.9", 0, 0},
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
