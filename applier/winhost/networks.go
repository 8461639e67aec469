package winhost

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"wmco/applier"
	"wmco/bundle"
)

// hnsNetwork and hnsEndpoint are what we read of the Host Networking Service.
type hnsNetwork struct {
	bundle.HNSNetwork
	ID string
}

type hnsEndpoint struct {
	bundle.HNSEndpoint
	ID string
	// Compartment is where it is attached, 0 where it is not.
	Compartment int
}

// networkService is the part of HNS that has networks. On a machine without HNS every call says applier.ErrNoSetting.
type networkService interface {
	networks() ([]hnsNetwork, error)
	deleteNetwork(id string) error
}

// endpointService is the part of HNS that has endpoints.
type endpointService interface {
	endpoints() ([]hnsEndpoint, error)
	// createEndpoint makes an endpoint on a network, with an address of the network's choice.
	createEndpoint(name, network string) (id string, err error)
	// attach returns when the endpoint is attached.
	attach(ctx context.Context, endpoint string, compartment int) error
	deleteEndpoint(id string) error
}

// errNoNetwork is why an endpoint cannot be made yet: the program that makes the network has not.
var errNoNetwork = fmt.Errorf("%w: its HNS network is not there", applier.ErrNoSetting)

// networks keeps bundle.KindNetwork.
type networks struct{ hns networkService }

func (n networks) read(_ context.Context, names []string) ([]applier.Setting, error) {
	there, err := n.hns.networks()
	if err != nil {
		return nil, err
	}
	all := make([]applier.Setting, len(names))
	for i, name := range names {
		all[i].Present = slices.ContainsFunc(there, func(n hnsNetwork) bool { return n.Name == name })
	}
	return all, nil
}

func (n networks) write(_ context.Context, s applier.Setting) error {
	if s.Present {
		return errors.New("HNS networks are only removed")
	}
	there, err := n.hns.networks()
	if err != nil {
		return err
	}
	for _, network := range there {
		if network.Name != s.Name {
			continue
		}
		if err := n.hns.deleteNetwork(network.ID); err != nil {
			return err
		}
	}
	return nil
}

// endpoints keeps bundle.KindEndpoint.
type endpoints struct {
	networks networkService
	hns      endpointService
}

func (e endpoints) read(_ context.Context, names []string) ([]applier.Setting, error) {
	there, err := e.hns.endpoints()
	if err != nil {
		return nil, err
	}
	all := make([]applier.Setting, len(names))
	for i, name := range names {
		all[i] = endpointSetting(there, name)
	}
	return all, nil
}

// endpointSetting tells of several endpoints with one name all values, which no bundle has.
func endpointSetting(there []hnsEndpoint, name string) applier.Setting {
	var values []string
	for _, e := range there {
		if e.Name == name {
			values = append(values, endpointValue(e.Network, e.Compartment))
		}
	}
	return applier.Setting{Value: strings.Join(values, ","), Present: len(values) > 0}
}

func endpointValue(network string, compartment int) string {
	return network + "/" + strconv.Itoa(compartment)
}

func (e endpoints) write(ctx context.Context, s applier.Setting) error {
	there, err := e.hns.endpoints()
	if err != nil {
		return err
	}
	if !s.Present {
		return e.clear(there, s.Name, "")
	}
	network, compartment, err := parseEndpoint(s.Value)
	if err != nil || endpointSetting(there, s.Name).Value == s.Value {
		return err
	}
	keep := ""
	for _, p := range there {
		if p.Name == s.Name && p.Network == network && p.Compartment == 0 {
			keep = p.ID // a cut came between creating and attaching
		}
	}
	if err := e.clear(there, s.Name, keep); err != nil {
		return err
	}
	if keep == "" {
		if keep, err = e.create(s.Name, network); err != nil {
			return err
		}
	}
	return e.hns.attach(ctx, keep, compartment)
}

// clear deletes all endpoints of the name but the one to keep.
func (e endpoints) clear(there []hnsEndpoint, name, keep string) error {
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

func (e endpoints) create(name, network string) (string, error) {
	there, err := e.networks.networks()
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
		return "", 0, fmt.Errorf("%q is not a network and a compartment", value)
	}
	compartment, err = strconv.Atoi(value[i+1:])
	if err != nil || compartment < 1 {
		return "", 0, fmt.Errorf("%q does not end in a compartment", value)
	}
	return value[:i], compartment, nil
}

// hostCompartment is where a machine's own adapters are
// (learn.microsoft.com/windows/win32/api/netioapi/nf-netioapi-getcurrentthreadcompartmentid).
const hostCompartment = 1

// compartmentOf tells where an endpoint is attached. HNS names the compartment of a container's namespace; an endpoint that
// is attached to the host shows as an address of one of its adapters.
func compartmentOf(address string, named uint32, own []netip.Addr) int {
	if a, err := netip.ParseAddr(address); err == nil && slices.Contains(own, a) {
		return hostCompartment
	}
	return int(named)
}
