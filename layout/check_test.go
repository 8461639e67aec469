package layout_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"wmco/bundle"
	"wmco/internal/hostsim/bundletest"
	"wmco/layout"
	"wmco/payload"
)

const runner = `C:\k\kube-log-runner.exe`

// command is a bundle in which a service has this command.
func command(t *testing.T, name string, argv ...string) bundle.Bundle {
	t.Helper()
	return bundletest.New().Changed(func(n *bundletest.Node) {
		n.Services = []bundle.Service{bundletest.Service(name, argv, nil)}
	}).Bundle(t)
}

// TestCommandsOfServices: a service runs its own program, and kube-log-runner starts nothing else.
func TestCommandsOfServices(t *testing.T) {
	const powershell = `C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`
	for _, tt := range []struct {
		what, service string
		argv          []string
		refused       string
	}{
		{"the kubelet", "kubelet", []string{`C:\k\kubelet.exe`, "--v=2"}, ""},
		{"the kubelet in other case", "kubelet", []string{`C:\K\Kubelet.exe`}, ""},
		{"the kubelet with a log", "kubelet", []string{runner, `-log-file=C:\var\log\kubelet\kubelet.log`, "-log-file-size=104857600", "-log-file-age=720h0m0s", "-flush-interval=5s", `C:\k\kubelet.exe`, "--v=2"}, ""},
		{"flags of the program that look like those of kube-log-runner", "kubelet", []string{runner, `C:\k\kubelet.exe`, "-log-file", "--"}, ""},
		{"the node agent", bundle.AgentService, []string{`C:\k\agent\wmco-node-2d711642b726.exe`, "run"}, ""},
		{"a service of Windows", "WinDefend", []string{`C:\k\kubelet.exe`}, "no service of this name"},
		{"the guard", bundle.GuardService, []string{`C:\k\agent\wmco-node-1.exe`, "run"}, "no service of this name"},
		{"a program of Windows", "kubelet", []string{powershell}, "it runs " + powershell},
		{"the program of another service", "kubelet", []string{`C:\k\csi-proxy.exe`}, "it runs"},
		{"a program beside the payload", "kubelet", []string{`C:\k\evil.exe`}, "it runs"},
		{"PowerShell through kube-log-runner", "kubelet", []string{runner, `-log-file=C:\var\log\x.log`, powershell, "-File", `C:\k\x.ps1`}, "it runs " + powershell},
		{"PowerShell by its name", "kubelet", []string{runner, "powershell.exe", "-File", `C:\k\x.ps1`, `C:\k\kubelet.exe`}, "it runs powershell.exe"},
		{"kube-log-runner through itself", "kubelet", []string{runner, runner, powershell}, "it runs"},
		{"the value of a flag as the program", "kubelet", []string{runner, "-log-file", `C:\k\kubelet.exe`, powershell}, `gets "-log-file"`},
		{"the end of flags", "kubelet", []string{runner, "--", powershell}, `gets "--"`},
		{"a flag with two dashes", "kubelet", []string{runner, `--log-file=C:\var\log\x.log`, `C:\k\kubelet.exe`}, "gets"},
		{"another flag", "kubelet", []string{runner, "-redirect-stderr=false", `C:\k\kubelet.exe`}, "gets"},
		{"a dash", "kubelet", []string{runner, "-", `C:\k\kubelet.exe`}, "gets"},
		{"a flag twice", "kubelet", []string{runner, `-log-file=C:\var\log\x.log`, `-log-file=C:\var\log\y.log`, `C:\k\kubelet.exe`}, "twice"},
		{"a log outside of the logs", "kubelet", []string{runner, `-log-file=C:\k\kubelet.exe`, `C:\k\kubelet.exe`}, "not below"},
		{"a log that leads out of the logs", "kubelet", []string{runner, `-log-file=C:\var\log\..\..\x`, `C:\k\kubelet.exe`}, "not below"},
		{"no program", "kubelet", []string{runner, `-log-file=C:\var\log\x.log`}, "starts nothing"},
		{"a node agent elsewhere", bundle.AgentService, []string{`C:\k\wmco-node-1.exe`, "run"}, "it runs"},
		{"a node agent with a foreign name", bundle.AgentService, []string{`C:\k\agent\wmco-node-x.exe`, "run"}, "it runs"},
		{"another command of the node agent", bundle.AgentService, []string{`C:\k\agent\wmco-node-1.exe`, "cleanup"}, "command run"},
		{"the image gateway", layout.Gateway, []string{`C:\k\agent\wmco-node-1.exe`, "registry", "--listen=127.0.0.1:22629"}, ""},
		{"the node agent as the image gateway", layout.Gateway, []string{`C:\k\agent\wmco-node-1.exe`, "run"}, "command registry"},
		{"the image gateway as the node agent", bundle.AgentService, []string{`C:\k\agent\wmco-node-1.exe`, "registry"}, "command run"},
	} {
		t.Run(tt.what, func(t *testing.T) { refused(t, command(t, tt.service, tt.argv...), tt.refused) })
	}
}

// refused checks that bundle.Check accepts the bundle, and that layout.Check refuses it with a text.
func refused(t *testing.T, b bundle.Bundle, want string) {
	t.Helper()
	if err := b.Check(); err != nil {
		t.Fatalf("not a case of this check: %v", err)
	}
	err := layout.Check(b)
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && (!errors.Is(err, layout.ErrForeign) || !strings.Contains(err.Error(), want)):
		t.Errorf("%v, want %q", err, want)
	}
}

// foreign is one entry of each kind that is in no bundle, and the refusal of it.
func foreign() map[bundle.EntryKind][]entry {
	service := func(change func(*bundle.Service)) func(*bundle.Layer) {
		return func(l *bundle.Layer) { change(&l.Services[0]) }
	}
	probe := func(kind bundle.ProbeKind, target string) func(*bundle.Layer) {
		return service(func(s *bundle.Service) { s.Probe.Kind, s.Probe.Target = kind, target })
	}
	file := func(path string) func(*bundle.Layer) {
		return func(l *bundle.Layer) {
			l.Files = append(l.Files, bundle.File{Path: path, Digest: bundle.Of(nil), Access: bundle.AccessUsers, Impact: bundle.ImpactNone})
		}
	}
	return map[bundle.EntryKind][]entry{
		bundle.KindDirectory: {{"an exclusive folder", func(l *bundle.Layer) {
			l.Directories = append(l.Directories, bundle.Directory{Path: `C:\k\cni`, Access: bundle.AccessUsers, Exclusive: true})
		}, "exclusive"}},
		bundle.KindFile: {{"a script", file(`C:\k\x.PS1`), "can be run"}, {"a program", file(`C:\k\kube-proxy.exe`), "can be run"}, {"a library", file(`C:\k\version.dll`), "can be run"}},
		bundle.KindState: {
			{"state that is the whole folder", func(l *bundle.Layer) { l.State = []bundle.State{{Path: `C:\var\lib`, Cluster: "another"}} }, "keeps state"},
			{"a pattern of state", func(l *bundle.Layer) {
				l.State = []bundle.State{{Path: layout.DirCNIConfig, Pattern: "*", Keep: 1}}
			}, "keeps state"},
		},
		bundle.KindVariable: {{"a variable of the host", func(l *bundle.Layer) {
			l.Variables = append(l.Variables, bundle.Variable{Name: "COR_PROFILER_PATH", Value: `C:\k\x`, Impact: bundle.ImpactNone})
		}, "none of"}},
		bundle.KindEnvironment: {
			{"a variable of services", func(l *bundle.Layer) {
				l.Environments[0].Variables = append(l.Environments[0].Variables, bundle.Variable{Name: "GODEBUG", Value: "x509sha1=1", Impact: bundle.ImpactNone})
			}, "GODEBUG"},
			{"another environment", func(l *bundle.Layer) { l.Environments = append(l.Environments, bundle.Environment{Name: "x"}) }, "is proxy"},
		},
		bundle.KindService: {
			{"a service", service(func(s *bundle.Service) { s.Name = "WinDefend" }), "no service"},
			{"a probe of another host", probe(bundle.ProbeHTTP, "http://169.254.169.254/latest"), "on the host itself"},
			{"a probe with a password", probe(bundle.ProbeHTTP, "http://a:b@127.0.0.1/"), "on the host itself"},
			{"a probe by name", probe(bundle.ProbeTCP, "db:5432"), "on the host itself"},
			{"a probe of a share", probe(bundle.ProbePipe, `\\server\pipe\x`), "on the host itself"},
			{"a log outside of the logs", service(func(s *bundle.Service) { s.Logs = []bundle.Log{{Path: `C:\k\x.log`, Pattern: "*"}} }), "logs[0]"},
		},
		bundle.KindRoute: {
			{"a route", func(l *bundle.Layer) {
				l.Routes = []bundle.Route{{Destination: "10.0.0.0/8", Via: "10.0.0.1", Impact: bundle.ImpactNone}}
			}, "the only routes"},
			{"another gateway", func(l *bundle.Layer) { l.Routes[0].Via = "10.0.0.66" }, "the only routes"},
		},
		bundle.KindFeature: {{"a feature", func(l *bundle.Layer) {
			l.Features = []bundle.Feature{{Name: "TelnetClient", Impact: bundle.ImpactReboot}}
		}, "the only feature"}},
		bundle.KindFirewall: {
			{"a rule", func(l *bundle.Layer) {
				l.Firewall = []bundle.FirewallRule{{Name: "RDP", Protocol: "TCP", Port: 3389, Impact: bundle.ImpactNone}}
			}, "opens no port"},
			{"another port", func(l *bundle.Layer) {
				l.Firewall = []bundle.FirewallRule{{Name: layout.RuleKubelet, Protocol: "TCP", Port: 445, Impact: bundle.ImpactNone}}
			}, "opens no port"},
		},
		bundle.KindExclusion: {{"an exclusion", func(l *bundle.Layer) {
			l.Exclusions = []bundle.Exclusion{{Process: `C:\k\kubelet.exe`, Impact: bundle.ImpactNone}}
		}, "Defender"}},
		bundle.KindPolicy: {
			{"a policy", func(l *bundle.Layer) {
				l.Policies = []bundle.Policy{{Name: `System\EnableSmartScreen`, Value: "0", Impact: bundle.ImpactNone}}
			}, "the only policy"},
			{"another value", func(l *bundle.Layer) {
				l.Policies = []bundle.Policy{{Name: bundle.PolicyUpdates, Value: "4", Impact: bundle.ImpactNone}}
			}, "the only policy"},
		},
		bundle.KindEndpoint: {{"an endpoint", func(l *bundle.Layer) {
			l.Endpoints = []bundle.Endpoint{{Name: layout.VIPEndpoint, Network: "nat", Compartment: 1, Impact: bundle.ImpactNone}}
		}, "the only endpoint"}},
		bundle.KindNetwork: {{"a network", func(l *bundle.Layer) { l.Networks = []bundle.Network{{Name: "nat", Cluster: "another"}} }, "the networks are"}},
		bundle.KindPayload: {{"an executable", func(l *bundle.Layer) {
			l.Payload = append(l.Payload, bundle.Payload{Path: `C:\k\evil.exe`, Component: payload.Kubelet, Digest: bundle.Of(nil), Impact: bundle.ImpactNone})
		}, "no executable"}},
	}
}

type entry struct {
	what    string
	change  func(*bundle.Layer)
	refused string
}

// TestForeignEntriesOfEveryKind: there is a closed list for each kind of entry, also for a kind that is added.
func TestForeignEntriesOfEveryKind(t *testing.T) {
	cases := foreign()
	for _, k := range bundle.Kinds() {
		if len(cases[k.Kind]) == 0 && !slices.Contains(layout.Unlimited(), k.Kind) {
			t.Errorf("%s: no case shows that names of this kind are limited", k.Kind)
		}
		for _, tt := range cases[k.Kind] {
			t.Run(tt.what, func(t *testing.T) {
				b := bundletest.New().Bundle(t)
				refused(t, b, "")
				b = bundletest.New().Changed(func(n *bundletest.Node) {
					n.Services = []bundle.Service{bundletest.Service("kubelet", []string{`C:\k\kubelet.exe`}, nil)}
				}).Bundle(t)
				tt.change(&b.Cluster)
				b.Cluster.Normalize()
				refused(t, b, tt.refused)
			})
		}
	}
}

func TestTheNodeLayerIsChecked(t *testing.T) {
	b := bundletest.New().Bundle(t)
	b.Node.Services = []bundle.Service{{Name: "WinDefend", Start: bundle.StartAuto, Argv: []string{`C:\k\kubelet.exe`}}}
	refused(t, b, "WinDefend")
}

// TestTheServicesRunTheWholePayload: a service of the table runs an executable of the payload that there is.
func TestTheServicesRunTheWholePayload(t *testing.T) {
	for _, name := range layout.ServiceNames() {
		argv := []string{payload.Find(payloadOf(name)).Path, "run"}
		if name == layout.Gateway {
			argv[1] = "registry"
		}
		if argv[0] == "" {
			t.Errorf("%s: no executable of the payload", name)
			continue
		}
		refused(t, command(t, name, argv...), "")
	}
}

// payloadOf returns the executable of a service.
func payloadOf(name string) string {
	switch name {
	case layout.CloudManager:
		return payload.CloudManager
	case layout.Agent, layout.Gateway:
		return payload.Agent
	}
	return name // the others have one name
}
