package networks

import (
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/windows"
)

// adapter is a network adapter that is up.
type adapter struct {
	index uint32
	// metric is the cost of the adapter. Windows adds it to that of a route.
	metric uint32
	// static is true for one that does not get its addresses by DHCP.
	static    bool
	addresses []netip.Addr
}

// listAdapters returns those of the host's own compartment with IPv4, without the loopback
// (learn.microsoft.com/windows/win32/api/iphlpapi/nf-iphlpapi-getadaptersaddresses).
func listAdapters() ([]adapter, error) {
	const flags = windows.GAA_FLAG_SKIP_ANYCAST | windows.GAA_FLAG_SKIP_MULTICAST | windows.GAA_FLAG_SKIP_DNS_SERVER
	size := uint32(15 << 10) // as documented
	for {
		buffer := make([]byte, size)
		first := (*windows.IpAdapterAddresses)(unsafe.Pointer(&buffer[0]))
		err := windows.GetAdaptersAddresses(windows.AF_INET, flags, 0, first, &size)
		switch {
		case err == nil:
			return usableAdapters(first), nil
		case errors.Is(err, windows.ERROR_NO_DATA):
			return nil, nil
		case !errors.Is(err, windows.ERROR_BUFFER_OVERFLOW):
			return nil, fmt.Errorf("reading network adapters: %w", err)
		}
	}
}

func usableAdapters(first *windows.IpAdapterAddresses) []adapter {
	var all []adapter
	for a := first; a != nil; a = a.Next {
		if a.OperStatus != windows.IfOperStatusUp || a.IfType == windows.IF_TYPE_SOFTWARE_LOOPBACK {
			continue
		}
		found := adapter{index: a.IfIndex, metric: a.Ipv4Metric, static: a.Flags&adapterDHCP == 0}
		for u := a.FirstUnicastAddress; u != nil; u = u.Next {
			if ip, ok := netip.AddrFromSlice(u.Address.IP().To4()); ok {
				found.addresses = append(found.addresses, ip)
			}
		}
		all = append(all, found)
	}
	return all
}

// adapterDHCP is IP_ADAPTER_DHCP_ENABLED
// (learn.microsoft.com/windows/win32/api/iptypes/ns-iptypes-ip_adapter_addresses_lh, Flags).
const adapterDHCP = 0x4

// StaticAddresses returns the IPv4 addresses that the host does not have by DHCP.
func StaticAddresses() ([]string, error) {
	all, err := listAdapters()
	var found []string
	for _, a := range all {
		if !a.static {
			continue
		}
		for _, ip := range a.addresses {
			found = append(found, ip.String())
		}
	}
	return found, err
}

func adapterAddresses(all []adapter) []netip.Addr {
	var found []netip.Addr
	for _, a := range all {
		found = append(found, a.addresses...)
	}
	return found
}
