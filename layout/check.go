package layout

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/payload"
)

// ErrForeign is wrapped by the errors of Check.
var ErrForeign = errors.New("not a bundle of this version")

// Check returns an error for the first entry that no bundle of this version has: a service, program or setting that is
// not in the table. It is for bundles that bundle.Check accepts.
func Check(b bundle.Bundle) error {
	for _, l := range b.Layers() {
		if err := CheckLayer(l); err != nil {
			return err
		}
	}
	return nil
}

// CheckLayer is Check for one layer.
func CheckLayer(l bundle.Layer) error {
	return cmp.Or(
		first(bundle.KindDirectory, l.Directories, func(d bundle.Directory) string { return d.Path }, checkDirectory),
		first(bundle.KindFile, l.Files, func(f bundle.File) string { return f.Path }, checkFile),
		first(bundle.KindState, l.State, func(s bundle.State) string { return s.Path }, checkState),
		first(bundle.KindVariable, l.Variables, func(v bundle.Variable) string { return v.Name }, checkVariable),
		first(bundle.KindEnvironment, l.Environments, func(e bundle.Environment) string { return e.Name }, checkEnvironment),
		first(bundle.KindService, l.Services, func(s bundle.Service) string { return s.Name }, checkService),
		first(bundle.KindRoute, l.Routes, func(r bundle.Route) string { return r.Destination }, checkRoute),
		first(bundle.KindFeature, l.Features, func(f bundle.Feature) string { return f.Name }, checkFeature),
		first(bundle.KindFirewall, l.Firewall, func(r bundle.FirewallRule) string { return r.Name }, checkFirewall),
		first(bundle.KindExclusion, l.Exclusions, func(e bundle.Exclusion) string { return e.Process }, checkExclusion),
		first(bundle.KindPolicy, l.Policies, func(p bundle.Policy) string { return p.Name }, checkPolicy),
		first(bundle.KindEndpoint, l.Endpoints, func(e bundle.Endpoint) string { return e.Name }, checkEndpoint),
		first(bundle.KindNetwork, l.Networks, func(n bundle.Network) string { return n.Name }, checkNetwork),
		first(bundle.KindPayload, l.Payload, func(p bundle.Payload) string { return p.Path }, checkPayload),
	)
}

// Unlimited are the kinds of which the table lists no names: a trusted CA is any certificate, an authorized key any
// public key, and a host has any name.
func Unlimited() []bundle.EntryKind {
	return []bundle.EntryKind{bundle.KindTrustedCA, bundle.KindAuthorizedKey, bundle.KindHostName}
}

// first returns the error of the first entry that has one.
func first[E any](kind bundle.EntryKind, entries []E, name func(E) string, check func(E) error) error {
	for _, e := range entries {
		if err := check(e); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrForeign, kind.ID(name(e)), err)
		}
	}
	return nil
}

func same(a, b string) bool { return bundle.FoldPath(a) == bundle.FoldPath(b) }

func checkDirectory(d bundle.Directory) error {
	if d.Exclusive && !same(d.Path, DirRegistries) {
		return fmt.Errorf("exclusive: only %s is", DirRegistries)
	}
	return nil
}

// checkFile keeps executables to the paths of the payload. The extensions are those that Windows starts by default
// (PATHEXT) and those of libraries, drivers, scripts and installers.
func checkFile(f bundle.File) error {
	name := bundle.FoldPath(bundle.Base(f.Path))
	i := strings.LastIndexByte(name, '.')
	if i >= 0 && slices.Contains(executableExtensions(), name[i:]) {
		return fmt.Errorf("path: a %s can be run or loaded, and only the payload has executables", name[i:])
	}
	return nil
}

func executableExtensions() []string {
	return []string{
		".exe", ".com", ".bat", ".cmd", ".vbs", ".vbe", ".js", ".jse", ".wsf", ".wsh", ".msc", ".cpl", ".ps1", ".psm1", ".psd1", ".ps1xml",
		".dll", ".ocx", ".sys", ".drv", ".scr", ".hta", ".msi", ".msp", ".lnk", ".pif", ".reg", ".manifest", ".local",
	}
}

func checkState(s bundle.State) error {
	known := slices.ContainsFunc(statePlaces(), func(p statePlace) bool { return same(s.Path, p.path) && s.Pattern == p.pattern })
	if !known {
		return fmt.Errorf("path: no program of a node keeps state there")
	}
	return nil
}

func checkVariable(v bundle.Variable) error {
	if !slices.Contains([]string{VariableHTTP, VariableHTTPS, VariableNoProxy}, v.Name) {
		return fmt.Errorf("name: it is none of %s, %s and %s", VariableHTTP, VariableHTTPS, VariableNoProxy)
	}
	return nil
}

func checkEnvironment(e bundle.Environment) error {
	if e.Name != ProxyEnvironment {
		return fmt.Errorf("name: the environment of services is %s", ProxyEnvironment)
	}
	for _, v := range e.Variables {
		if err := checkVariable(v); err != nil {
			return fmt.Errorf("variable %s: %w", v.Name, err)
		}
	}
	return nil
}

func checkService(s bundle.Service) error {
	if err := checkCommand(s); err != nil {
		return err
	}
	for i, l := range s.Logs {
		if !isLog(l.Path) {
			return fmt.Errorf("logs[%d]: %s is not below %s", i, l.Path, DirLogs)
		}
	}
	return checkProbe(s.Probe)
}

// checkProbe keeps the requests of the node agent on its host.
func checkProbe(p bundle.Probe) error {
	local := false
	switch p.Kind {
	case bundle.ProbeHTTP:
		u, err := url.Parse(p.Target)
		local = err == nil && u.Scheme == "http" && u.User == nil && isLoopback(u.Hostname())
	case bundle.ProbeTCP:
		a, err := netip.ParseAddrPort(p.Target)
		local = err == nil && a.Addr().IsLoopback()
	case bundle.ProbePipe:
		local = strings.HasPrefix(p.Target, `\\.\pipe\`)
	case bundle.ProbeRunning:
		local = true
	}
	if !local {
		return fmt.Errorf("probe: %s %q asks nothing on the host itself", p.Kind, p.Target)
	}
	return nil
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

func checkRoute(r bundle.Route) error {
	known := append(AmazonRoutes(), MetadataRoute)
	if !slices.Contains(known, r.Destination) || r.Via != bundle.ViaDefault {
		return fmt.Errorf("the only routes are %s via %s", strings.Join(known, ", "), bundle.ViaDefault)
	}
	return nil
}

func checkFeature(f bundle.Feature) error {
	if f.Name != FeatureContainers {
		return fmt.Errorf("the only feature is %s", FeatureContainers)
	}
	return nil
}

func checkFirewall(r bundle.FirewallRule) error {
	known := slices.ContainsFunc(Firewall(), func(k bundle.FirewallRule) bool {
		return k.Name == r.Name && k.Protocol == r.Protocol && k.Port == r.Port
	})
	if !known {
		return fmt.Errorf("a node opens no port %d/%s by this name", r.Port, r.Protocol)
	}
	return nil
}

func checkExclusion(e bundle.Exclusion) error {
	if !same(e.Process, Exclusion()) {
		return fmt.Errorf("process: Defender scans everything but %s", Exclusion())
	}
	return nil
}

func checkPolicy(p bundle.Policy) error {
	if p.Name != bundle.PolicyUpdates || p.Value != bundle.UpdatesNotInstalled {
		return fmt.Errorf("the only policy is %s with the value %s", bundle.PolicyUpdates, bundle.UpdatesNotInstalled)
	}
	return nil
}

func checkEndpoint(e bundle.Endpoint) error {
	if e.Name != VIPEndpoint || e.Network != OverlayNetwork || e.Compartment != HostCompartment {
		return fmt.Errorf("the only endpoint is %s of %s in compartment %d", VIPEndpoint, OverlayNetwork, HostCompartment)
	}
	return nil
}

func checkNetwork(n bundle.Network) error {
	if n.Name != BaseNetwork && n.Name != OverlayNetwork {
		return fmt.Errorf("name: the networks are %s and %s", BaseNetwork, OverlayNetwork)
	}
	return nil
}

func checkPayload(p bundle.Payload) error {
	if !slices.ContainsFunc(payload.Programs(), func(x payload.Executable) bool { return runs(p.Path, x.Program) }) {
		return fmt.Errorf("path: no executable of the payload has it")
	}
	return nil
}
