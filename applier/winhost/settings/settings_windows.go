package settings

import (
	"time"

	"golang.org/x/sys/windows"

	"wmco/applier/winhost/services"
	"wmco/applier/winhost/wait"
	"wmco/bundle"
)

// Host has the settings of this host.
type Host struct {
	features featureImage
	defender defender
	firewall firewallRules
}

// New opens nothing.
func New() Host {
	return Host{
		features: &remembered{featureImage: limitedImage{dism{}, wait.NewCalls("DISM", answerLimit)}, now: time.Now},
		defender: limitedDefender{microsoftDefender{}, wait.NewCalls("WMI, asked for the settings of Defender,", answerLimit)},
		firewall: limitedFirewall{windowsFirewall{}, wait.NewCalls("the Windows firewall", answerLimit)},
	}
}

// Keepers returns the Keepers of this package.
func (h Host) Keepers() Keepers {
	return Keepers{
		bundle.KindVariable:  variableKeeper{machineVariables{}},
		bundle.KindTrustedCA: certificateKeeper{RootStore{}},
		bundle.KindFeature:   featureKeeper{h.features},
		bundle.KindFirewall:  firewallKeeper{h.firewall},
		bundle.KindExclusion: exclusionKeeper{h.defender},
		bundle.KindPolicy:    policyKeeper{policyValues{}, policyNotes{}},
		bundle.KindHostName:  nameKeeper{machineName{}},
	}
}

// Hives are the parts of the registry that keep settings, by kind.
var Hives = map[bundle.EntryKind]string{
	bundle.KindVariable: "SYSTEM", bundle.KindHostName: "SYSTEM", bundle.KindRoute: "SYSTEM", bundle.KindFirewall: "SYSTEM",
	bundle.KindTrustedCA: "SOFTWARE", bundle.KindPolicy: "SOFTWARE",
}

// Facts sets the names of the host, whether Defender runs, and the features if the host has any. What Windows does not
// tell but for the names is unknown.
func (h Host) Facts(f *bundle.Facts) (err error) {
	if f.HostName, err = computerNameEx(windows.ComputerNamePhysicalDnsHostname); err != nil {
		return err
	}
	if f.DNSSuffix, err = computerNameEx(windows.ComputerNamePhysicalDnsDomain); err != nil {
		return err
	}
	note := func(part bundle.FactPart, err error) {
		if err != nil {
			f.Unknown = append(f.Unknown, bundle.UnknownFact{Part: part, Error: err.Error()})
		}
	}
	f.DefenderRunning, err = services.IsRunning(defenderService)
	note(bundle.PartDefender, err)
	f.PendingBoots, err = pendingBoots()
	note(bundle.PartPendingBoots, err)
	f.Features, err = enabledFeatures(h.features)
	note(bundle.PartFeatures, IgnoreNoSetting(err))
	return nil
}
