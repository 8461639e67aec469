package winhost

import (
	"context"
	"fmt"
	"maps"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/winhost/files"
	"wmco/applier/winhost/hklm"
	"wmco/applier/winhost/networks"
	"wmco/applier/winhost/services"
	"wmco/applier/winhost/settings"
	"wmco/bundle"
)

// Host is this host. It needs the rights of an administrator.
type Host struct {
	files.Files
	services.Manager
	settings settings.Host
	networks networks.Host
	keepers  settings.Keepers
}

var _ applier.Host = (*Host)(nil)

// Options are for tests. The zero Options are right for every Windows.
type Options struct {
	// Wine is true if Wine is in the place of Windows. The host cannot find that out.
	Wine bool
}

// New opens nothing.
func New(o Options) *Host {
	s, n := settings.New(), networks.New()
	keepers := s.Keepers()
	maps.Copy(keepers, n.Keepers())
	f := files.Files{NoACLs: o.Wine}
	keepers[bundle.KindAuthorizedKey] = settings.AuthorizedKeys(f)
	return &Host{
		Files:    f,
		Manager:  services.Manager{Limits: services.DefaultLimits(), ForgetsDependencies: o.Wine},
		settings: s,
		networks: n,
		keepers:  keepers,
	}
}

// Settings asks each API of Windows once.
func (h *Host) Settings(ctx context.Context, names []plan.Setting) ([]plan.Setting, error) {
	return h.keepers.Read(ctx, names)
}

// Set changes nothing if the setting is as it should be. It returns when the change is on the disk.
func (h *Host) Set(ctx context.Context, setting plan.Setting) error {
	err := h.keepers.Write(ctx, setting)
	if hive := settings.Hives[setting.Kind]; hive != "" && err == nil {
		err = hklm.FlushHive(hive)
	}
	return err
}

// RetireService marks the service first: one that has lost its program, and is started by a boot, would stay.
func (h *Host) RetireService(ctx context.Context, name string) error {
	program, err := h.Manager.RetireService(ctx, name)
	if err != nil || program == "" {
		return err
	}
	return h.RemoveAtBoot(ctx, program)
}

// Probe asks a service of this host once.
func (h *Host) Probe(ctx context.Context, probe bundle.Probe) error {
	switch probe.Kind {
	case bundle.ProbeHTTP, bundle.ProbeTCP:
		return probeNetwork(ctx, probe)
	case bundle.ProbePipe:
		return probePipe(probe.Target)
	case bundle.ProbeRunning:
	}
	return fmt.Errorf("probing %s: the service control manager answers this, not the host", probe.Kind)
}
