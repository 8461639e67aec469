package winhost

import (
	"context"
	"fmt"
	"time"

	"wmco/applier"
	"wmco/bundle"
)

// Host is this machine. It needs the rights of an administrator.
type Host struct {
	settings  settings
	features  featureImage
	networks  networkService
	endpoints endpointService
	limits    serviceLimits
	metadata  metadata
	wine      bool
}

var _ applier.Host = (*Host)(nil)

// New is this machine. Nothing is opened until it is asked for.
func New() *Host {
	hns := hns{}
	image := &remembered{featureImage: dism{}, now: time.Now}
	return &Host{
		settings: settings{
			bundle.KindVariable:  variables{machineVariables{}},
			bundle.KindTrustedCA: certificates{rootStore{}},
			bundle.KindRoute:     routes{activeRoutes{}, persistentRoutes{}},
			bundle.KindFeature:   features{image},
			bundle.KindFirewall:  firewall{windowsFirewall{}},
			bundle.KindExclusion: exclusions{microsoftDefender{}},
			bundle.KindEndpoint:  endpoints{hns, hns},
			bundle.KindNetwork:   networks{hns},
			bundle.KindHostName:  computer{machineName{}},
		},
		features:  image,
		networks:  hns,
		endpoints: hns,
		limits:    usualLimits(),
		metadata:  newMetadata(),
		wine:      isWine(),
	}
}

// Settings asks each subsystem of Windows once.
func (h *Host) Settings(ctx context.Context, names []applier.Setting) ([]applier.Setting, error) {
	return h.settings.read(ctx, names)
}

// Set changes nothing that is as it should be, and is done when the disk has the change.
func (h *Host) Set(ctx context.Context, setting applier.Setting) error {
	err := h.settings.write(ctx, setting)
	if hive := hives[setting.Kind]; hive != "" && err == nil {
		err = flushHive(hive)
	}
	return err
}

// Probe asks a service of this machine.
func (h *Host) Probe(ctx context.Context, probe bundle.Probe) error {
	switch probe.Kind {
	case bundle.ProbeHTTP, bundle.ProbeTCP:
		return probeNetwork(ctx, probe)
	case bundle.ProbePipe:
		return probePipe(probe.Target)
	case bundle.ProbeRunning:
	}
	return fmt.Errorf("probing %s: not asked of the machine", probe.Kind)
}
