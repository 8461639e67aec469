package networks

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/Microsoft/hnslib"
	"golang.org/x/sys/windows"

	"wmco/applier"
	"wmco/applier/winhost/wait"
	"wmco/bundle"
)

// hns is the Host Networking Service by its first API (HNS v1), the only one that can attach an endpoint to the host
// (github.com/microsoft/hnslib; learn.microsoft.com/windows-server/networking/technologies/hcn/hcn-top describes the
// service).
type hns struct{}

// checkInstalled returns applier.ErrNoSetting if the host does not have the service. Then it does not have the library
// either.
func (hns) checkInstalled() error {
	if windows.NewLazySystemDLL("vmcompute.dll").NewProc("HNSCall").Find() != nil {
		return applier.ErrNoSetting
	}
	return nil
}

// wrapError adds where an error comes from.
func wrapError(err error) error {
	if err != nil {
		return fmt.Errorf("asking the Host Networking Service: %w", err)
	}
	return nil
}

func (h hns) listNetworks() ([]network, error) {
	if err := h.checkInstalled(); err != nil {
		return nil, err
	}
	list, err := hnslib.HNSListNetworkRequest("GET", "", "")
	if err != nil {
		return nil, wrapError(err)
	}
	var all []network
	for _, n := range list {
		found := network{ID: n.Id, HNSNetwork: bundle.HNSNetwork{Name: n.Name, ManagementIP: n.ManagementIP}}
		if len(n.Subnets) > 0 {
			found.AddressPrefix = n.Subnets[0].AddressPrefix
		}
		all = append(all, found)
	}
	return all, nil
}

func (hns) deleteNetwork(id string) error {
	_, err := (&hnslib.HNSNetwork{Id: id}).Delete()
	return wrapError(err)
}

func (h hns) listEndpoints() ([]endpoint, error) {
	if err := h.checkInstalled(); err != nil {
		return nil, err
	}
	list, err := hnslib.HNSListEndpointRequest()
	if err != nil {
		return nil, wrapError(err)
	}
	own, err := listAdapters()
	if err != nil {
		return nil, err
	}
	var all []endpoint
	for _, e := range list {
		named := uint32(0)
		if e.Namespace != nil {
			named = e.Namespace.CompartmentId
		}
		found := endpoint{ID: e.Id, HNSEndpoint: bundle.HNSEndpoint{Name: e.Name, Network: e.VirtualNetworkName, IP: ipText(e.IPAddress)}}
		found.Compartment = compartmentOf(found.IP, named, adapterAddresses(own))
		all = append(all, found)
	}
	return all, nil
}

// ipText returns "" for no address.
func ipText(ip net.IP) string {
	if ip == nil {
		return ""
	}
	return ip.String()
}

func (hns) createEndpoint(name, on string) (string, error) {
	made, err := (&hnslib.HNSEndpoint{Name: name, VirtualNetwork: on}).Create()
	if err != nil {
		return "", wrapError(err)
	}
	return made.Id, nil
}

const attachPause = 200 * time.Millisecond

func (h hns) attachEndpoint(ctx context.Context, id string, compartment int) error {
	if compartment < 1 || compartment > 1<<16-1 {
		return fmt.Errorf("compartment %d: not a number from 1 to 65535", compartment)
	}
	if err := (&hnslib.HNSEndpoint{Id: id}).HostAttach(uint16(compartment)); err != nil {
		return wrapError(err)
	}
	err := wait.PollUntil(ctx, attachLimit, attachPause, func() (bool, error) {
		all, err := h.listEndpoints()
		return slices.ContainsFunc(all, func(e endpoint) bool { return e.ID == id && e.Compartment == compartment }), err
	})
	if err != nil {
		return fmt.Errorf("waiting for the address of endpoint %s: %w", id, err)
	}
	return nil
}

func (hns) deleteEndpoint(id string) error {
	_, err := (&hnslib.HNSEndpoint{Id: id}).Delete()
	return wrapError(err)
}
