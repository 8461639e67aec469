package networks

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
)

// network is a network of HNS.
type network struct {
	bundle.HNSNetwork
	ID string
}

// endpoint is an endpoint of HNS.
type endpoint struct {
	bundle.HNSEndpoint
	ID string
	// Compartment is the one that it is attached to, 0 if it is not attached.
	Compartment int
}

// networkService is the part of HNS for networks. Without HNS every call returns applier.ErrNoSetting.
type networkService interface {
	listNetworks() ([]network, error)
	deleteNetwork(id string) error
}

// endpointService is the part of HNS for endpoints.
type endpointService interface {
	listEndpoints() ([]endpoint, error)
	// createEndpoint creates an endpoint on a network, which chooses its address.
	createEndpoint(name, network string) (id string, err error)
	// attachEndpoint returns when the endpoint is attached.
	attachEndpoint(ctx context.Context, endpoint string, compartment int) error
	deleteEndpoint(id string) error
}

// errNoNetwork is why an endpoint cannot be created yet: the program that creates the network has not done so.
var errNoNetwork = fmt.Errorf("%w: its HNS network does not exist", applier.ErrNoSetting)

// networkKeeper keeps bundle.KindNetwork.
type networkKeeper struct{ hns networkService }

func (n networkKeeper) Read(_ context.Context, names []string) ([]plan.Setting, error) {
	there, err := n.hns.listNetworks()
	if err != nil {
		return nil, err
	}
	all := make([]plan.Setting, len(names))
	for i, name := range names {
		all[i].Present = slices.ContainsFunc(there, func(n network) bool { return n.Name == name })
	}
	return all, nil
}

func (n networkKeeper) Write(_ context.Context, s plan.Setting) error {
	if s.Present {
		return errors.New("HNS networks are removed and never created")
	}
	there, err := n.hns.listNetworks()
	if err != nil {
		return err
	}
	for _, found := range there {
		if found.Name != s.Name {
			continue
		}
		if err := n.hns.deleteNetwork(found.ID); err != nil {
			return err
		}
	}
	return nil
}

// endpointKeeper keeps bundle.KindEndpoint.
type endpointKeeper struct {
	networks networkService
	hns      endpointService
}

func (e endpointKeeper) Read(_ context.Context, names []string) ([]plan.Setting, error) {
	there, err := e.hns.listEndpoints()
	if err != nil {
		return nil, err
	}
	all := make([]plan.Setting, len(names))
	for i, name := range names {
		all[i] = endpointSetting(there, name)
	}
	return all, nil
}

// endpointSetting joins the values of all endpoints with the name. No bundle has the value of several.
func endpointSetting(there []endpoint, name string) plan.Setting {
	var values []string
	for _, e := range there {
		if e.Name == name {
			values = append(values, e.Network+"/"+strconv.Itoa(e.Compartment))
		}
	}
	return plan.Setting{Value: strings.Join(values, ","), Present: len(values) > 0}
}

func (e endpointKeeper) Write(ctx context.Context, s plan.Setting) error {
	there, err := e.hns.listEndpoints()
	if err != nil {
		return err
	}
	if !s.Present {
		return e.deleteOthers(there, s.Name, "")
	}
	on, compartment, err := parseEndpoint(s.Value)
	if err != nil || endpointSetting(there, s.Name).Value == s.Value {
		return err
	}
	keep := ""
	for _, p := range there {
		if p.Name == s.Name && p.Network == on && p.Compartment == 0 {
			keep = p.ID // an interrupted run created it and did not attach it
		}
	}
	if err := e.deleteOthers(there, s.Name, keep); err != nil {
		return err
	}
	if keep == "" {
		if keep, err = e.createEndpoint(s.Name, on); err != nil {
			return err
		}
	}
	return e.hns.attachEndpoint(ctx, keep, compartment)
}

// deleteOthers deletes all endpoints with the name except the one to keep.
func (e endpointKeeper) deleteOthers(there []endpoint, name, keep string) error {
	for _, p := range there {
		if p.Name != name || p.ID == keep {
			continue
		}
		if err := e.hns.deleteEndpoint(p.ID); err != nil {
			return err
		}
	}
	return nil
}

func (e endpointKeeper) createEndpoint(name, network string) (string, error) {
	there, err := e.networks.listNetworks()
	if err != nil {
		return "", err
	}
	for _, n := range there {
		if n.Name == network {
			return e.hns.createEndpoint(name, n.ID)
		}
	}
	return "", fmt.Errorf("%w: %s", errNoNetwork, network)
}

func parseEndpoint(value string) (network string, compartment int, err error) {
	i := strings.LastIndexByte(value, '/')
	if i <= 0 {
		return "", 0, fmt.Errorf("%q is not NETWORK/COMPARTMENT", value)
	}
	compartment, err = strconv.Atoi(value[i+1:])
	if err != nil || compartment < 1 {
		return "", 0, fmt.Errorf("%q does not end in a compartment: a number of 1 or more", value)
	}
	return value[:i], compartment, nil
}

// hostCompartment is the compartment of the host's own adapters
// (learn.microsoft.com/windows/win32/api/netioapi/nf-netioapi-getcurrentthreadcompartmentid).
const hostCompartment = 1

// compartmentOf returns the compartment of an endpoint. HNS returns that of a container's namespace as named. The
// address of an endpoint that is attached to the host is an address of one of the host's own adapters.
func compartmentOf(address string, named uint32, own []netip.Addr) int {
	if a, err := netip.ParseAddr(address); err == nil && slices.Contains(own, a) {
		return hostCompartment
	}
	return int(named)
}
