package networks

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"wmco/applier/plan"
	"wmco/applier/winhost/settings"
	"wmco/bundle"
)

// route is an IPv4 route.
type route struct {
	Destination netip.Prefix
	Via         netip.Addr
	// Interface is the index of the interface, and Metric the cost of the route and its interface together. A
	// persistent route has neither.
	Interface, Metric uint32
}

// routeStore is the active or the persistent store of routes. At boot, Windows fills the active one from the persistent
// one.
type routeStore interface {
	listRoutes() ([]route, error)
	addRoute(r route) error
	removeRoute(r route) error
}

// routeKeeper keeps bundle.KindRoute.
type routeKeeper struct{ active, persistent routeStore }

// errNoDefaultRoute is why a route by the default gateway cannot be set.
var errNoDefaultRoute = errors.New("the host has no IPv4 default route")

func (r routeKeeper) Read(ctx context.Context, names []string) ([]plan.Setting, error) {
	active, persistent, err := r.listBothStores()
	if err != nil {
		return nil, err
	}
	gateway, _ := defaultRoute(active)
	return settings.ReadEach(ctx, names, func(name string) (plan.Setting, error) {
		destination, err := netip.ParsePrefix(name)
		if err != nil {
			return plan.Setting{}, err
		}
		return routeSetting(nextHops(active, destination), nextHops(persistent, destination), gateway.Via), nil
	})
}

func (r routeKeeper) listBothStores() (active, persistent []route, err error) {
	if active, err = r.active.listRoutes(); err != nil {
		return nil, nil, fmt.Errorf("reading active routes: %w", err)
	}
	// Windows adds those to the networks of the host itself.
	active = slices.DeleteFunc(active, func(r route) bool { return r.Via.IsUnspecified() })
	if persistent, err = r.persistent.listRoutes(); err != nil {
		return nil, nil, fmt.Errorf("reading persistent routes: %w", err)
	}
	return active, persistent, nil
}

// routeSetting compares the next hops of one destination in both stores. If both have the same single hop, that is the
// value. Otherwise the value is empty, which no bundle has, so that both stores are set.
func routeSetting(active, persistent []netip.Addr, gateway netip.Addr) plan.Setting {
	s := plan.Setting{Present: len(active)+len(persistent) > 0}
	if len(active) != 1 || !slices.Equal(active, persistent) {
		return s
	}
	s.Value = active[0].String()
	if active[0] == gateway {
		s.Value = bundle.ViaDefault
	}
	return s
}

// nextHops returns the next hops of the routes to a destination, without duplicates.
func nextHops(all []route, destination netip.Prefix) []netip.Addr {
	var found []netip.Addr
	for _, r := range all {
		if r.Destination == destination.Masked() && !slices.Contains(found, r.Via) {
			found = append(found, r.Via)
		}
	}
	return found
}

// defaultRoute returns the IPv4 default route with the lowest metric
// (learn.microsoft.com/windows-server/networking/technologies/network-subsystem/net-sub-interface-metric).
func defaultRoute(all []route) (route, bool) {
	var best route
	for _, r := range all {
		if r.Destination.Bits() == 0 && !r.Via.IsUnspecified() && (!best.Via.IsValid() || r.Metric < best.Metric) {
			best = r
		}
	}
	return best, best.Via.IsValid()
}

// Write makes the route the only one to its destination in both stores. It sets the persistent one first: if the run is
// interrupted, the next boot sets the route.
func (r routeKeeper) Write(_ context.Context, s plan.Setting) error {
	destination, err := netip.ParsePrefix(s.Name)
	if err != nil {
		return err
	}
	active, persistent, err := r.listBothStores()
	if err != nil {
		return err
	}
	wanted := route{Destination: destination.Masked()}
	if s.Present {
		if wanted.Via, err = nextHop(s.Value, active); err != nil {
			return err
		}
	}
	if err := replaceRoute(r.persistent, persistent, wanted); err != nil {
		return fmt.Errorf("changing persistent routes: %w", err)
	}
	if err := replaceRoute(r.active, active, wanted); err != nil {
		return fmt.Errorf("changing active routes: %w", err)
	}
	return nil
}

func nextHop(value string, active []route) (netip.Addr, error) {
	if value != bundle.ViaDefault {
		return netip.ParseAddr(value)
	}
	gateway, ok := defaultRoute(active)
	if !ok {
		return netip.Addr{}, errNoDefaultRoute
	}
	return gateway.Via, nil
}

// replaceRoute removes all routes to the destination except the wanted one, and adds that one if it has a next hop.
func replaceRoute(store routeStore, all []route, wanted route) error {
	exists := false
	for _, r := range all {
		if r.Destination != wanted.Destination {
			continue
		}
		if r.Via == wanted.Via {
			exists = true
			continue
		}
		if err := store.removeRoute(r); err != nil {
			return err
		}
	}
	if exists || !wanted.Via.IsValid() {
		return nil
	}
	return store.addRoute(wanted)
}

// persistentName returns the name of the empty registry value of a persistent route: destination, mask, next hop,
// metric (learn.microsoft.com/previous-versions/windows/it-pro/windows-2000-server/cc978475(v=technet.10),
// PersistentRoutes). The stack adds the cost of the interface to the metric.
func persistentName(r route) string {
	return fmt.Sprintf("%s,%s,%s,%d", r.Destination.Addr(), subnetMask(r.Destination.Bits()), r.Via, max(r.Metric, 1))
}

func subnetMask(bits int) netip.Addr {
	full := ^uint32(0) << (32 - bits)
	return netip.AddrFrom4([4]byte{byte(full >> 24), byte(full >> 16), byte(full >> 8), byte(full)})
}

// parsePersistent is the inverse of persistentName. It returns false for any other name.
func parsePersistent(name string) (route, bool) {
	fields := strings.Split(name, ",")
	if len(fields) != 4 {
		return route{}, false
	}
	var addresses [3]netip.Addr
	for i := range addresses {
		a, err := netip.ParseAddr(fields[i])
		if err != nil || !a.Is4() {
			return route{}, false
		}
		addresses[i] = a
	}
	metric, err := strconv.ParseUint(fields[3], 10, 32)
	if err != nil {
		return route{}, false
	}
	for bits := range 33 {
		if subnetMask(bits) == addresses[1] {
			return route{Destination: netip.PrefixFrom(addresses[0], bits).Masked(), Via: addresses[2], Metric: uint32(metric)}, true
		}
	}
	return route{}, false
}
