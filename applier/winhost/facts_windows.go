package winhost

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"wmco/applier/winhost/hklm"
	"wmco/applier/winhost/metadata"
	"wmco/bundle"
)

// Facts leaves out what the host does not have. What a part of Windows does not tell is unknown.
func (h *Host) Facts(ctx context.Context) (bundle.Facts, error) {
	v := windows.RtlGetVersion() // learn.microsoft.com/windows/win32/devnotes/rtlgetversion
	f := bundle.Facts{
		Schema:   bundle.FactsSchema,
		OSBuild:  fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber),
		BootTime: bootTime().UTC().Format(time.RFC3339),
	}
	for _, add := range []func(*bundle.Facts) error{h.settings.Facts, h.networks.Facts} {
		if err := errors.Join(ctx.Err(), add(&f)); err != nil {
			return bundle.Facts{}, fmt.Errorf("reading facts: %w", err)
		}
	}
	instance := metadata.Ask(ctx, firmwareTexts())
	f.MetadataName, f.ProviderID = instance.Name, instance.ProviderID
	return f, ctx.Err()
}

// keyFirmware has the SMBIOS texts of the firmware. Clouds document them.
const keyFirmware = `HARDWARE\DESCRIPTION\System\BIOS`

// firmwareTexts returns the texts of the firmware, none if they cannot be read.
func firmwareTexts() []string {
	var texts []string
	_ = hklm.WithKey(keyFirmware, registry.QUERY_VALUE, func(k registry.Key) error {
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

// timeOfDay is SYSTEM_TIMEOFDAY_INFORMATION. Its class and length are documented at
// learn.microsoft.com/windows/win32/api/winternl/nf-winternl-ntquerysysteminformation. If the clock is set, Windows
// changes BootTime and BootTimeBias by the same amount, so that their difference stays what it was at boot.
type timeOfDay struct {
	BootTime, CurrentTime, TimeZoneBias int64 // 100 ns; times since 1601
	TimeZoneID, Reserved                uint32
	BootTimeBias, SleepTimeBias         int64
}

// classTimeOfDay is SystemTimeOfDayInformation.
const classTimeOfDay = 3

// bootTime returns the same time until the next boot. If Windows does not report it, bootTime computes it from the
// uptime and rounds it to a minute, so that it rarely differs between two calls.
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
