package bundle

import (
	"errors"
	"strings"
	"testing"
)

// valid returns a bundle with one entry of the kinds that these tests change.
func valid() Bundle {
	return Bundle{
		Cluster: Layer{
			Schema: Schema, Kind: LayerCluster, Stage: StageJoined,
			Directories:  []Directory{{Path: `C:\k`, Access: AccessUsers}, {Path: `C:\k\registries`, Access: AccessAdmins, Exclusive: true}},
			Files:        []File{{Path: `C:\k\registries\a.io\hosts.toml`, Digest: Of(nil), Access: AccessUsers, Impact: ImpactNone}},
			State:        []State{{Path: `C:\k\certs`}, {Path: `C:\k\certs`, Pattern: "old-*.pem", Keep: 2}},
			Environments: []Environment{{Name: "proxy", Variables: []Variable{{Name: "NO_PROXY", Value: ".svc", Impact: ImpactRestart}}}},
			Services: []Service{{
				Name: "kubelet", Start: StartAuto, Argv: []string{`C:\k\kubelet.exe`}, Recovery: Recovery{RestartAfterSeconds: []int{0, 10}, ResetSeconds: 300},
				Probe: Probe{Kind: ProbeRunning, DeadlineSeconds: 60}, Impact: ImpactRestart,
			}},
			Routes:   []Route{{Destination: "169.254.169.254/32", Via: ViaDefault, Impact: ImpactNone}},
			Firewall: []FirewallRule{{Name: "kubelet", Protocol: "TCP", Port: 10250, Impact: ImpactNone}},
			Payload:  []Payload{{Path: `C:\k\kubelet.exe`, Component: "kubelet", Digest: Of(nil), Impact: ImpactNone}},
		},
		Node: Layer{Schema: Schema, Kind: LayerNode, Stage: StageJoined},
	}
}

// TestWhatNoHostCanHaveIsRefusedBeforeItIsTried: each of these was begun and rolled back, or done. The message names the field.
func TestWhatNoHostCanHaveIsRefusedBeforeItIsTried(t *testing.T) {
	service := func(change func(*Service)) func(*Layer) { return func(l *Layer) { change(&l.Services[0]) } }
	route := func(destination, via string) func(*Layer) {
		return func(l *Layer) { l.Routes = []Route{{Destination: destination, Via: via, Impact: ImpactNone}} }
	}
	state := func(s State) func(*Layer) { return func(l *Layer) { l.State = []State{s} } }
	rule := func(protocol string, port int) func(*Layer) {
		return func(l *Layer) { l.Firewall[0].Protocol, l.Firewall[0].Port = protocol, port }
	}
	tests := []struct {
		what   string
		change func(*Layer)
		want   string
	}{
		{"nothing", func(*Layer) {}, ""},
		{"a route by an address", route("10.0.0.0/8", "10.0.0.1"), ""},
		{"a route with a command", route("0.0.0.0/0; calc", ViaDefault), "destination"},
		{"a route that is no network", route("10.0.0.1/8", ViaDefault), "destination"},
		{"a route of IPv6", route("fd00::/8", ViaDefault), "destination"},
		{"a route in another form", route("010.0.0.0/8", ViaDefault), "destination"},
		{"a gateway with a command", route("10.0.0.0/8", "10.0.0.1; calc"), "via"},
		{"a gateway of IPv6", route("10.0.0.0/8", "::1"), "via"},
		{"no gateway", route("10.0.0.0/8", ""), "via"},
		{"a service that starts by hand", service(func(s *Service) { s.Start = "manual" }), "start"},
		{"a service that never starts", service(func(s *Service) { s.Start = "disabled" }), "start"},
		{"a service without a start type", service(func(s *Service) { s.Start = "" }), "start"},
		{"a negative delay", service(func(s *Service) { s.Recovery.RestartAfterSeconds = []int{10, -1} }), "recovery.restartAfterSeconds[1]"},
		{"a delay that overflows", service(func(s *Service) { s.Recovery.RestartAfterSeconds = []int{4294968} }), "recovery.restartAfterSeconds[0]"},
		{"a negative time to reset", service(func(s *Service) { s.Recovery.ResetSeconds = -1 }), "recovery.resetSeconds"},
		{"a time to reset that overflows", service(func(s *Service) { s.Recovery.ResetSeconds = 1 << 32 }), "recovery.resetSeconds"},
		{"an unknown probe", service(func(s *Service) { s.Probe.Kind = "exec" }), "probe"},
		{"an argument with a NUL", service(func(s *Service) { s.Argv = append(s.Argv, "a\x00b") }), "argv[1]"},
		{"a variable with a NUL", func(l *Layer) { l.Environments[0].Variables[0].Value = "a\x00b" }, "NO_PROXY"},
		{"a negative limit of a log", service(func(s *Service) { s.Logs = []Log{{Path: `C:\var\log\x.log`, Files: -1}} }), "logs[0]"},
		{"a rule without a protocol", rule("", 22), "protocol"},
		{"a rule for no port", rule("TCP", 0), "port"},
		{"a rule for a port above all", rule("TCP", 65536), "port"},
		{"state in an exclusive folder", state(State{Path: `C:\k\Registries\state`}), "exclusive"},
		{"state that is an exclusive folder", state(State{Path: `C:\k\registries`}), "exclusive"},
		{"old files in an exclusive folder", state(State{Path: `C:\k\registries`, Pattern: "*.old", Keep: 1}), "exclusive"},
		{"state around files", state(State{Path: `C:\k`, Cluster: "blue"}), "holds"},
		{"state that is a file", state(State{Path: `C:\k\Kubelet.exe`}), "holds"},
		{"state around a folder", func(l *Layer) {
			l.Directories = append(l.Directories, Directory{Path: `C:\k\state\x`, Access: AccessUsers})
			l.State = []State{{Path: `C:\k\state`}}
		}, "holds"},
		{"old files that are files of the bundle", state(State{Path: `C:\k`, Pattern: "kube*", Keep: 1}), "holds"},
		{"a pattern that cannot be read", state(State{Path: `C:\k\certs`, Pattern: "[a", Keep: 1}), "pattern"},
		{"a negative number of files", state(State{Path: `C:\k\certs`, Pattern: "a*", Keep: -1}), "keep"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			b := valid()
			tt.change(&b.Cluster)
			b.Cluster.Normalize()
			err := b.Check()
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (!errors.Is(err, ErrInconsistent) || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// TestStateOfOneLayerIsCheckedAgainstTheOther: the layers are checked together.
func TestStateOfOneLayerIsCheckedAgainstTheOther(t *testing.T) {
	b := valid()
	b.Node.State = []State{{Path: `C:\k\registries\x`}}
	if err := b.Check(); !errors.Is(err, ErrInconsistent) {
		t.Errorf("%v", err)
	}
}
