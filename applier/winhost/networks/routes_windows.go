package networks

import (
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"wmco/applier"
	"wmco/applier/winhost/hklm"
)

// activeRoutes is the routing table in use, until the next boot
// (learn.microsoft.com/windows/win32/api/netioapi/nf-netioapi-createipforwardentry2).
type activeRoutes struct{}

func (activeRoutes) listRoutes() ([]route, error) {
	all, err := listAdapters()
	if err != nil {
		return nil, err
	}
	cost := map[uint32]uint32{}
	for _, a := range all {
		cost[a.index] = a.metric
	}
	var found []route
	err = eachRow(func(row *windows.MibIpForwardRow2) error {
		r := route{Interface: row.InterfaceIndex, Metric: row.Metric + cost[row.InterfaceIndex], Via: addressOf(&row.NextHop)}
		r.Destination = netip.PrefixFrom(addressOf(&row.DestinationPrefix.Prefix), int(row.DestinationPrefix.PrefixLength)).Masked()
		found = append(found, r)
		return nil
	})
	return found, err
}

// eachRow calls see with every row of the IPv4 table
// (learn.microsoft.com/windows/win32/api/netioapi/nf-netioapi-getipforwardtable2).
func eachRow(see func(*windows.MibIpForwardRow2) error) error {
	var table *windows.MibIpForwardTable2
	if err := windows.GetIpForwardTable2(windows.AF_INET, &table); err != nil {
		return err
	}
	defer windows.FreeMibTable(unsafe.Pointer(table))
	rows := table.Rows()
	for i := range rows {
		if err := see(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// addressOf and setAddress take the address for one of IPv4 (SOCKADDR_IN).
func addressOf(a *windows.RawSockaddrInet) netip.Addr {
	return netip.AddrFrom4((*windows.RawSockaddrInet4)(unsafe.Pointer(a)).Addr)
}

func setAddress(a *windows.RawSockaddrInet, ip netip.Addr) {
	in := (*windows.RawSockaddrInet4)(unsafe.Pointer(a))
	in.Family, in.Addr = windows.AF_INET, ip.As4()
}

// addRoute uses the interface that Windows selects for the next hop.
func (activeRoutes) addRoute(r route) error {
	var row windows.MibIpForwardRow2
	initialize := windows.NewLazySystemDLL("iphlpapi.dll").NewProc("InitializeIpForwardEntry") // it returns nothing
	if initialize.Find() != nil {
		return applier.ErrNoSetting
	}
	_, _, _ = initialize.Call(uintptr(unsafe.Pointer(&row)))
	if err := windows.GetBestInterfaceEx(&windows.SockaddrInet4{Addr: r.Via.As4()}, &row.InterfaceIndex); err != nil {
		return fmt.Errorf("finding the interface to %s: %w", r.Via, err)
	}
	setAddress(&row.DestinationPrefix.Prefix, r.Destination.Addr())
	row.DestinationPrefix.PrefixLength = uint8(r.Destination.Bits()) //nolint:gosec // 32 at most
	setAddress(&row.NextHop, r.Via)
	row.Metric = r.Metric
	err := callIPHelper("CreateIpForwardEntry2", &row)
	if errors.Is(err, windows.ERROR_OBJECT_ALREADY_EXISTS) {
		return nil
	}
	return err
}

func (activeRoutes) removeRoute(r route) error {
	return eachRow(func(row *windows.MibIpForwardRow2) error {
		same := int(row.DestinationPrefix.PrefixLength) == r.Destination.Bits() &&
			addressOf(&row.DestinationPrefix.Prefix) == r.Destination.Addr() && addressOf(&row.NextHop) == r.Via
		if !same {
			return nil
		}
		err := callIPHelper("DeleteIpForwardEntry2", row)
		if errors.Is(err, windows.ERROR_NOT_FOUND) {
			return nil
		}
		return err
	})
}

// callIPHelper calls a function that takes a row and returns an error code. It returns applier.ErrNoSetting if the
// library lacks the function, as that of Wine does.
func callIPHelper(function string, row *windows.MibIpForwardRow2) error {
	f := windows.NewLazySystemDLL("iphlpapi.dll").NewProc(function)
	if f.Find() != nil {
		return applier.ErrNoSetting
	}
	if code, _, _ := f.Call(uintptr(unsafe.Pointer(row))); code != 0 {
		return fmt.Errorf("%s: %w", function, windows.Errno(code))
	}
	return nil
}

// keyPersistentRoutes has the routes that are set at boot. The IP helper has no function for them.
const keyPersistentRoutes = hklm.TCPIP + `\PersistentRoutes`

// persistentRoutes is the store in the registry.
type persistentRoutes struct{}

func (persistentRoutes) listRoutes() ([]route, error) {
	var found []route
	err := hklm.WithKey(keyPersistentRoutes, registry.QUERY_VALUE, func(k registry.Key) error {
		names, err := k.ReadValueNames(0)
		for _, name := range names {
			if r, ok := parsePersistent(name); ok {
				found = append(found, r)
			}
		}
		return err
	})
	return found, hklm.IgnoreNotExist(err)
}

func (persistentRoutes) addRoute(r route) error {
	k, _, err := registry.CreateKey(registry.LOCAL_MACHINE, keyPersistentRoutes, registry.SET_VALUE)
	if err != nil {
		return err
	}
	return errors.Join(k.SetStringValue(persistentName(r), ""), k.Close())
}

// removeRoute removes the route with any metric.
func (persistentRoutes) removeRoute(r route) error {
	return hklm.WithKey(keyPersistentRoutes, registry.QUERY_VALUE|registry.SET_VALUE, func(k registry.Key) error {
		names, err := k.ReadValueNames(0)
		for _, name := range names {
			if p, ok := parsePersistent(name); ok && p.Destination == r.Destination && p.Via == r.Via {
				err = errors.Join(err, hklm.IgnoreNotExist(k.DeleteValue(name)))
			}
		}
		return err
	})
}
