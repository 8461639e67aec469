package winhost

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/Microsoft/hnslib"
	"golang.org/x/sys/windows"

	"wmco/applier"
	"wmco/bundle"
)

// hns is the Host Networking Service by its first API, the one that can attach an endpoint to the host
// (github.com/microsoft/hnslib; learn.microsoft.com/windows-server/networking/technologies/hcn/hcn-top describes the service).
type hns struct{}

// has tells, as an error, that a machine has no such service: then there is no library for it either.
func (hns) has() error {
	if windows.NewLazySystemDLL("vmcompute.dll").NewProc("HNSCall").Find() != nil {
		return applier.ErrNoSetting
	}
	return nil
}

// told says of an error who it comes from.
func told(err error) error {
	if err != nil {
		return fmt.Errorf("asking the Host Networking Service: %w", err)
	}
	return nil
}

func (h hns) networks() ([]hnsNetwork, error) {
	if err := h.has(); err != nil {
		return nil, err
	}
	list, err := hnslib.HNSListNetworkRequest("GET", "", "")
	if err != nil {
		return nil, told(err)
	}
	var all []hnsNetwork
	for _, n := range list {
		found := hnsNetwork{ID: n.Id, HNSNetwork: bundle.HNSNetwork{Name: n.Name, ManagementIP: n.ManagementIP}}
		if len(n.Subnets) > 0 {
			found.AddressPrefix = n.Subnets[0].AddressPrefix
		}
		all = append(all, found)
	}
	return all, nil
}

func (hns) deleteNetwork(id string) error {
	_, err := (&hnslib.HNSNetwork{Id: id}).Delete()
	return told(err)
}

func (h hns) endpoints() ([]hnsEndpoint, error) {
	if err := h.has(); err != nil {
		return nil, err
	}
	list, err := hnslib.HNSListEndpointRequest()
	if err != nil {
		return nil, told(err)
	}
	here, err := adapters()
	if err != nil {
		return nil, err
	}
	var all []hnsEndpoint
	for _, e := range list {
		named := uint32(0)
		if e.Namespace != nil {
			named = e.Namespace.CompartmentId
		}
		found := hnsEndpoint{ID: e.Id, HNSEndpoint: bundle.HNSEndpoint{Name: e.Name, Network: e.VirtualNetworkName, IP: ipText(e.IPAddress)}}
		found.Compartment = compartmentOf(found.IP, named, ownAddresses(here))
		all = append(all, found)
	}
	return all, nil
}

// ipText is empty for no address.
func ipText(ip net.IP) string {
	if ip == nil {
		return ""
	}
	return ip.String()
}

func (hns) createEndpoint(name, network string) (string, error) {
	made, err := (&hnslib.HNSEndpoint{Name: name, VirtualNetwork: network}).Create()
	if err != nil {
		return "", told(err)
	}
	return made.Id, nil
}

// The adapter of an endpoint gets its address a moment after the endpoint is attached.
const (
	attachLimit = 30 * time.Second
	attachPause = 200 * time.Millisecond
)

func (h hns) attach(ctx context.Context, endpoint string, compartment int) error {
	if compartment < 1 || compartment > 1<<16-1 {
		return fmt.Errorf("compartment %d is none", compartment)
	}
	if err := (&hnslib.HNSEndpoint{Id: endpoint}).HostAttach(uint16(compartment)); err != nil {
		return told(err)
	}
	err := poll(ctx, attachLimit, attachPause, func() (bool, error) {
		all, err := h.endpoints()
		return slices.ContainsFunc(all, func(e hnsEndpoint) bool { return e.ID == endpoint && e.Compartment == compartment }), err
	})
	if err != nil {
		return fmt.Errorf("waiting for the address of endpoint %s: %w", endpoint, err)
	}
	return nil
}

func (hns) deleteEndpoint(id string) error {
	_, err := (&hnslib.HNSEndpoint{Id: id}).Delete()
	return told(err)
}
