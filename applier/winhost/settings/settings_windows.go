package settings

import (
	"time"

	"golang.org/x/sys/windows"

	"wmco/applier/winhost/services"
	"wmco/bundle"
)

// Host has the settings of this host.
type Host struct{ features featureImage }

// New opens nothing.
func New() Host { return Host{&remembered{featureImage: dism{}, now: time.Now}} }

// Keepers returns the Keepers of this package.
func (h Host) Keepers() Keepers {
	return Keepers{
		bundle.KindVariable:  variableKeeper{machineVariables{}},
		bundle.KindTrustedCA: certificateKeeper{RootStore{}},
		bundle.KindFeature:   featureKeeper{h.features},
		bundle.KindFirewall:  firewallKeeper{windowsFirewall{}},
		bundle.KindExclusion: exclusionKeeper{microsoftDefender{}},
		bundle.KindPolicy:    policyKeeper{policyValues{}, policyNotes{}},
		bundle.KindHostName:  nameKeeper{machineName{}},
	}
}

// Hives are the parts of the registry that keep settings, by kind.
var Hives = map[bundle.EntryKind]string{
	bundle.KindVariable: "SYSTEM", bundle.KindHostName: "SYSTEM", bundle.KindRoute: "SYSTEM", bundle.KindFirewall: "SYSTEM",
	bundle.KindTrustedCA: "SOFTWARE", bundle.KindPolicy: "SOFTWARE",
}

// Facts sets the names of the host, whether Defender runs, and the features if the host has any.
func (h Host) Facts(f *bundle.Facts) (err error) {
	if f.HostName, err = computerNameEx(windows.ComputerNamePhysicalDnsHostname); err != nil {
		return err
	}
	if f.DNSSuffix, err = computerNameEx(windows.ComputerNamePhysicalDnsDomain); err != nil {
		return err
	}
	if f.DefenderRunning, err = services.IsRunning(defenderService); err != nil {
		return err
	}
	if f.PendingBoots, err = pendingBoots(); err != nil {
		return err
	}
	f.Features, err = enabledFeatures(h.features)
	return IgnoreNoSetting(err)
}
