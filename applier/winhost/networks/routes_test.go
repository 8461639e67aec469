package networks

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/plan"
	"wmco/applier/winhost/keepertest"
	"wmco/bundle"
)

// fakeRoutes is a store of routes.
type fakeRoutes struct {
	all    []route
	writes *int
	err    error
}

func (f *fakeRoutes) listRoutes() ([]route, error) { return slices.Clone(f.all), f.err }

func (f *fakeRoutes) addRoute(r route) error { *f.writes++; f.all = append(f.all, r); return nil }

func (f *fakeRoutes) removeRoute(r route) error {
	*f.writes++
	f.all = slices.DeleteFunc(f.all, func(h route) bool { return h.Destination == r.Destination && h.Via == r.Via })
	return nil
}

func to(destination, via string) route {
	return route{Destination: netip.MustParsePrefix(destination), Via: netip.MustParseAddr(via)}
}

const instanceMetadata = "169.254.169.254/32"

// newRoutes returns the routes of a host with two default routes. The one by 10.0.0.1 has the lower metric.
func newRoutes() (routeKeeper, *fakeRoutes, *fakeRoutes, *int) {
	writes := new(int)
	far, near := to("0.0.0.0/0", "10.9.9.1"), to("0.0.0.0/0", "10.0.0.1")
	far.Metric, near.Metric = 50, 25
	active := &fakeRoutes{writes: writes, all: []route{to("10.0.0.0/24", "0.0.0.0"), far, near}}
	persistent := &fakeRoutes{writes: writes, all: []route{to("192.168.0.0/16", "10.0.0.7")}}
	return routeKeeper{active, persistent}, active, persistent, writes
}

func TestRoutes(t *testing.T) {
	r, active, persistent, writes := newRoutes()
	keepertest.CheckLifecycle(t, r, writes, instanceMetadata, bundle.ViaDefault, "10.0.0.9", bundle.ViaDefault)
	if len(active.all) != 3 || len(persistent.all) != 1 {
		t.Errorf("left: %v and %v", active.all, persistent.all)
	}
}

func TestARouteThatDiffersInOneStoreIsRepaired(t *testing.T) {
	r, active, persistent, _ := newRoutes()
	wanted := plan.Setting{Name: instanceMetadata, Value: bundle.ViaDefault, Present: true}
	if err := r.Write(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	whole, recorded := slices.Clone(active.all), slices.Clone(persistent.all)
	tests := map[string]func(){
		"not active":            func() { active.all = whole[:3] },
		"not persistent":        func() { persistent.all = recorded[:1] },
		"active by another hop": func() { active.all[3].Via = netip.MustParseAddr("10.0.0.9") },
		"active by two hops":    func() { active.all = append(active.all, to(instanceMetadata, "10.0.0.9")) },
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			active.all, persistent.all = slices.Clone(whole), slices.Clone(recorded)
			damage()
			keepertest.CheckRead(t, r, instanceMetadata, plan.Setting{Present: true})
			if err := r.Write(t.Context(), wanted); err != nil {
				t.Fatal(err)
			}
			keepertest.CheckRead(t, r, instanceMetadata, plan.Setting{Value: bundle.ViaDefault, Present: true})
		})
	}
}

func TestTheHostsOwnNetworkIsNoRoute(t *testing.T) {
	r, active, _, _ := newRoutes()
	keepertest.CheckRead(t, r, "10.0.0.0/24", plan.Setting{})
	keepertest.CheckLifecycle(t, r, active.writes, "10.0.0.0/24", "10.0.0.9")
	if !slices.Contains(active.all, to("10.0.0.0/24", "0.0.0.0")) {
		t.Errorf("left: %v", active.all)
	}
}

func TestInvalidRoutesAreRefused(t *testing.T) {
	r, active, _, writes := newRoutes()
	for _, s := range []plan.Setting{{Name: "no prefix", Present: true, Value: "10.0.0.1"}, {Name: instanceMetadata, Value: "no address", Present: true}} {
		if err := r.Write(t.Context(), s); err == nil || *writes != 0 {
			t.Errorf("%+v: %v after %d changes", s, err, *writes)
		}
	}
	active.all = active.all[:1]
	err := r.Write(t.Context(), plan.Setting{Name: instanceMetadata, Value: bundle.ViaDefault, Present: true})
	if !errors.Is(err, errNoDefaultRoute) {
		t.Errorf("without a default route: %v", err)
	}
	active.err = errNoDefaultRoute
	if _, err := r.Read(t.Context(), []string{instanceMetadata}); !errors.Is(err, active.err) {
		t.Errorf("without a table: %v", err)
	}
}

func TestPersistentName(t *testing.T) {
	for name, want := range map[string]route{
		"169.254.169.254,255.255.255.255,10.0.0.1,1": to(instanceMetadata, "10.0.0.1"),
		"10.99.100.0,255.255.255.0,10.99.99.1,1":     to("10.99.100.0/24", "10.99.99.1"),
		"0.0.0.0,0.0.0.0,10.0.0.1,1":                 to("0.0.0.0/0", "10.0.0.1"),
	} {
		if got := persistentName(want); got != name {
			t.Errorf("the name of %v is %s, want %s", want, got, name)
		}
		want.Metric = 1
		got, ok := parsePersistent(name)
		if !ok || !cmp.Equal(want, got, cmp.AllowUnexported(netip.Addr{}, netip.Prefix{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })) {
			t.Errorf("%s is read as %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"", "10.0.0.0", "10.0.0.0,255.0.255.0,10.0.0.1,1", "10.0.0.0,255.0.0.0,10.0.0.1,x", "fd00::,255.0.0.0,10.0.0.1,1", "a,b,c,d"} {
		if got, ok := parsePersistent(name); ok {
			t.Errorf("%q is read as %v", name, got)
		}
	}
}

func FuzzParsePersistent(f *testing.F) {
	f.Add("10.99.100.0,255.255.255.0,10.99.99.1,1")
	f.Fuzz(func(t *testing.T, name string) {
		r, ok := parsePersistent(name)
		if !ok {
			return
		}
		again, ok := parsePersistent(persistentName(r))
		if again.Metric = r.Metric; !ok || again != r {
			t.Errorf("%q is %v, whose name is read as %v", name, r, again)
		}
	})
}
