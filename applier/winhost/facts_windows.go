package winhost

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"wmco/applier"
	"wmco/bundle"
)

// Facts leaves out what the machine does not have.
func (h *Host) Facts(ctx context.Context) (bundle.Facts, error) {
	v := windows.RtlGetVersion() // learn.microsoft.com/windows/win32/devnotes/rtlgetversion
	f := bundle.Facts{
		Schema:   bundle.FactsSchema,
		OSBuild:  fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber),
		BootTime: bootTime().UTC().Format(time.RFC3339),
	}
	steps := []func(*bundle.Facts) error{namesOf, addressesOf, defenderOf, h.featuresOf, h.networksOf}
	for _, step := range steps {
		if err := errors.Join(ctx.Err(), step(&f)); err != nil {
			return bundle.Facts{}, fmt.Errorf("reading facts: %w", err)
		}
	}
	f.MetadataName = h.metadata.name(ctx, cloudsOf(firmware()))
	return f, ctx.Err()
}

func namesOf(f *bundle.Facts) (err error) {
	if f.HostName, err = computerNameEx(windows.ComputerNamePhysicalDnsHostname); err != nil {
		return err
	}
	f.DNSSuffix, err = computerNameEx(windows.ComputerNamePhysicalDnsDomain)
	return err
}

func addressesOf(f *bundle.Facts) error {
	here, err := adapters()
	if err != nil {
		return err
	}
	table, err := (activeRoutes{}).routes()
	if err != nil {
		return err
	}
	addresses := ownAddresses(here)
	slices.SortFunc(addresses, netip.Addr.Compare)
	f.Addresses = make([]string, len(addresses))
	for i, a := range addresses {
		f.Addresses[i] = a.String()
	}
	gateway, ok := defaultRoute(table)
	for _, a := range here {
		if ok && a.index == gateway.Interface && len(a.addresses) > 0 {
			f.DefaultRoute = bundle.DefaultRoute{Address: a.addresses[0].String(), Gateway: gateway.Via.String()}
		}
	}
	return nil
}

func defenderOf(f *bundle.Facts) (err error) {
	f.DefenderRunning, err = defenderRuns()
	return err
}

func (h *Host) featuresOf(f *bundle.Facts) (err error) {
	f.Features, err = enabledFeatures(h.features)
	return ignoreNoSetting(err)
}

func (h *Host) networksOf(f *bundle.Facts) error {
	list, err := h.networks.networks()
	if err != nil {
		return ignoreNoSetting(err)
	}
	for _, n := range list {
		f.Networks = append(f.Networks, n.HNSNetwork)
	}
	ends, err := h.endpoints.endpoints()
	for _, e := range ends {
		f.Endpoints = append(f.Endpoints, e.HNSEndpoint)
	}
	return ignoreNoSetting(err)
}

func ignoreNoSetting(err error) error {
	if errors.Is(err, applier.ErrNoSetting) {
		return nil
	}
	return err
}

// keyFirmware holds what the firmware says of the machine (SMBIOS), of which clouds document the makers' names.
const keyFirmware = `HARDWARE\DESCRIPTION\System\BIOS`

// firmware are its texts; none where they cannot be read.
func firmware() []string {
	var texts []string
	_ = withKey(keyFirmware, registry.QUERY_VALUE, func(k registry.Key) error {
		names, err := k.ReadValueNames(0)
		for _, name := range names {
			if text, _, err := k.GetStringValue(name); err == nil {
				texts = append(texts, text)
			}
		}
		return err
	})
	return texts
}

// timeOfDay is SYSTEM_TIMEOFDAY_INFORMATION, of which learn.microsoft.com/windows/win32/api/winternl/nf-winternl-ntquerysysteminformation
// documents the class and the length. When somebody sets the clock, Windows moves BootTime and BootTimeBias by as much, so
// that their difference stays what it was at boot.
type timeOfDay struct {
	BootTime, CurrentTime, TimeZoneBias int64 // 100 ns; times since 1601
	TimeZoneID, Reserved                uint32
	BootTimeBias, SleepTimeBias         int64
}

// classTimeOfDay is SystemTimeOfDayInformation.
const classTimeOfDay = 3

// bootTime is the same in every call between two boots. Where Windows does not tell it, it is the time of the uptime,
// rounded so far that clocks do not change it between two calls, except across the border of a minute.
func bootTime() time.Time {
	var t timeOfDay
	err := windows.NtQuerySystemInformation(classTimeOfDay, unsafe.Pointer(&t), uint32(unsafe.Sizeof(t)), nil)
	if err == nil && t.BootTime > 0 {
		boot := t.BootTime - t.BootTimeBias
		filetime := windows.Filetime{LowDateTime: uint32(boot), HighDateTime: uint32(boot >> 32)} //nolint:gosec // the two halves
		return time.Unix(0, filetime.Nanoseconds())
	}
	return time.Now().Add(-windows.DurationSinceBoot()).Round(time.Minute)
}
