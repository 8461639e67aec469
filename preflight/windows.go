package preflight

import (
	"fmt"
	"slices"

	"wmco/bundle"
	"wmco/bundle/reason"
)

func checkUpdate(q Question, a Answer) bundle.Findings {
	if a.Facts.Build() == build2025 && a.Machine.Update != 0 && a.Machine.Update < update2025 {
		return warn(reason.WindowsUpdateMissing, fmt.Sprintf(
			"Windows 10.0.%d.%d is older than the first update that is supported", build2025, a.Machine.Update,
		),
			fmt.Sprintf("install the newest cumulative update (KB5087539, 26100.%d, or later)", update2025))
	}
	custom := q.VXLANPort != 0 && q.VXLANPort != portVXLAN
	if a.Facts.Build() != build2022 || a.Machine.Update == 0 || a.Machine.Update >= updateVXLAN || !custom && !q.VSphere {
		return nil
	}
	return refuse(reason.WindowsUpdateMissing, fmt.Sprintf(
		"Windows 10.0.%d.%d has no custom VXLAN port, which this cluster needs", build2022, a.Machine.Update,
	),
		fmt.Sprintf("install the newest cumulative update (KB5012637, 20348.%d, or later)", updateVXLAN))
}

// checkStaticAddress warns of a static address that the first container network may take off the host.
func checkStaticAddress(q Question, a Answer) bundle.Findings {
	address := a.Facts.DefaultRoute.Address
	if q.Node || a.Facts.Build() == build2022 || a.Machine.DevicelessNICsDisabled ||
		!slices.Contains(a.Machine.StaticAddresses, address) {
		return nil
	}
	return warn(reason.DevicelessNICsEnabled, fmt.Sprintf(
		"the host's address %q is static: on this release of Windows the first container network may take it off the host",
		address,
	),
		`before the host joins, set the DWORD DeviceLessNicDisabled of HKLM\SYSTEM\CurrentControlSet\Services\hns\State to 1 and boot the host`)
}
