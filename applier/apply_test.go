package applier_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/hostsim/simulation"
)

func TestApplyConfiguresAnEmptyHost(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	o := m.mustApply(t, n)
	if o.Result != protocol.ResultApplied {
		t.Errorf("result %s", o.Result)
	}
	done := 0
	for _, e := range m.events {
		if e.Event == protocol.EventAction {
			if done++; e.Done != done || e.Total != o.Total {
				t.Errorf("action %d of %d is reported as %d of %d", done, o.Total, e.Done, e.Total)
			}
		}
	}
	if done == 0 || done != o.Done || o.Done != o.Total {
		t.Errorf("%d actions are reported, the result says %d of %d", done, o.Done, o.Total)
	}
	seen := m.Snapshot()
	for path, text := range n.Files {
		if got, ok := m.Contents(path); !ok || got != text {
			t.Errorf("%s holds %q", path, got)
		}
	}
	for _, name := range []string{"containerd", "kubelet"} {
		if s := seen.Services[name]; s.Status != plan.ServiceRunning {
			t.Errorf("service %s is %s", name, s.Status)
		}
	}
	want := []string{"HTTP_PROXY=http://user:sesame-proxy@proxy:3128", "NO_PROXY=.svc"}
	if diff := cmp.Diff(want, seen.Services["kubelet"].Delivered); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if again := m.observe(t, n); !again.InSync || len(again.Missing) > 0 {
		t.Errorf("afterwards: %+v", again)
	}
}

func TestASecondApplyWritesNothing(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	m.clock.Jump(100e9)
	m.mustApply(t, n) // the cache, now that files have settled
	steps := m.Steps()
	o := m.mustApply(t, n)
	if o.Result != protocol.ResultSame || o.Written+o.Restarted > 0 {
		t.Errorf("%+v", o)
	}
	if m.Steps() != steps {
		t.Errorf("%d steps: %v", m.Steps()-steps, m.Log()[len(m.Log())-(m.Steps()-steps):])
	}
}

// drift is what others change on a host.
var drift = []struct {
	name string
	do   func(*machine)
	// restarts are the services that the repair restarts.
	restarts []string
}{
	{"a file has other line ends", func(m *machine) {
		m.Place(`C:\k\kubelet.conf`, bundle.AccessUsers, "kind: KubeletConfiguration\r\n")
	}, []string{"kubelet"}},
	{"a file has a byte order mark", func(m *machine) {
		m.Place(`C:\k\containerd\registries\a.io\hosts.toml`, bundle.AccessUsers, "\ufeffserver = \"https://a.io\"\n")
	}, nil},
	{"a file is empty", func(m *machine) { m.Place(`C:\k\containerd\containerd_conf.toml`, bundle.AccessUsers, "") }, []string{"containerd", "kubelet"}},
	{"a file is missing", func(m *machine) { m.Discard(`C:\k\kubelet.conf`) }, []string{"kubelet"}},
	{"a file is a folder", func(m *machine) {
		m.Discard(`C:\k\kubelet.conf`)
		m.Place(`C:\k\kubelet.conf\x\y`, bundle.AccessUsers, "z")
	}, []string{"kubelet"}},
	{"a file is a link", func(m *machine) {
		m.Discard(`C:\k\kubelet.conf`)
		m.PlaceLink(`C:\k\kubelet.conf`)
	}, []string{"kubelet"}},
	{"a folder is a file", func(m *machine) {
		m.Discard(`C:\k\containerd\registries`)
		m.Place(`C:\k\containerd\registries`, bundle.AccessUsers, "z")
	}, nil},
	{"users can read a secret", func(m *machine) { m.SetAccess(`C:\k\bootstrap-kubeconfig`, plan.AccessOther) }, nil},
	{"an exclusive folder has another file", func(m *machine) {
		m.Place(`C:\k\containerd\registries\evil.io\hosts.toml`, bundle.AccessUsers, "server = \"https://evil.io\"\n")
	}, nil},
	{"a program was replaced", func(m *machine) { m.Place(`C:\k\kubelet.exe`, bundle.AccessUsers, "another") }, []string{"kubelet"}},
	{"a variable has another value", func(m *machine) {
		m.edit(func(s *simulation.State) {
			s.Put(plan.Setting{Kind: bundle.KindVariable, Name: "NO_PROXY", Value: "x", Present: true})
		})
	}, nil},
	{"a CA is missing", func(m *machine) {
		m.edit(func(s *simulation.State) {
			delete(s.Settings, simulation.SettingKey(bundle.KindTrustedCA, string(bundle.Of([]byte("first CA")))))
		})
	}, nil},
	{"a service is stopped", func(m *machine) {
		editService(m, "kubelet", func(s *simulation.Service) { s.Status, s.Processes = plan.ServiceStopped, nil })
	}, []string{"kubelet"}},
	{"a service is disabled", func(m *machine) {
		editService(m, "kubelet", func(s *simulation.Service) { s.Start = plan.StartDisabled })
	}, nil},
	{"a service has other arguments", func(m *machine) { editService(m, "kubelet", func(s *simulation.Service) { s.CommandLine += " --v=9" }) }, []string{"kubelet"}},
	{"a service is missing", func(m *machine) {
		m.edit(func(s *simulation.State) { delete(s.Services, simulation.Key("kubelet")) })
	}, []string{"kubelet"}},
}

func editService(m *machine, name string, change func(*simulation.Service)) {
	m.edit(func(s *simulation.State) {
		x := s.Services[simulation.Key(name)]
		change(&x)
		s.Services[simulation.Key(name)] = x
	})
}

func TestDriftIsRepairedFromKeptContents(t *testing.T) {
	t.Parallel()
	for _, tt := range drift {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, n := newMachine(), newNode()
			m.mustApply(t, n)
			m.clock.Jump(100e9)
			m.mustApply(t, n)
			want := m.place()
			tt.do(m)
			m.clock.Jump(1e9)
			if o := m.observe(t, n); o.InSync {
				t.Error("nothing differs")
			}
			if _, err := m.repair(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := differs(want, m.place()); diff != "" {
				t.Errorf("after the repair (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.restarts, m.started()); diff != "" {
				t.Errorf("started (-want +got):\n%s", diff)
			}
			if o := m.observe(t, n); !o.InSync {
				t.Errorf("still differs: %+v", o.Actions)
			}
		})
	}
}

// started are the services that the last run started, by name; each once.
func (m *machine) started() []string {
	var names []string
	for _, e := range m.events {
		if e.Event == protocol.EventAction && e.Action.Verb == protocol.VerbStart {
			names = append(names, string(e.Action.Entry)[len("service "):])
		}
	}
	slices.Sort(names)
	return names
}

// changes are bundles after newNode.
var changes = []struct {
	name     string
	change   func(*node)
	impact   bundle.Impact
	restarts []string
}{
	{"a mirror changes", func(n *node) { n.Files[`C:\k\containerd\registries\a.io\hosts.toml`] = "server = \"https://b.io\"\n" }, bundle.ImpactNone, nil},
	{"a mirror is removed", func(n *node) { delete(n.Files, `C:\k\containerd\registries\a.io\hosts.toml`) }, bundle.ImpactNone, nil},
	{"the kubelet's configuration changes", func(n *node) { n.Files[`C:\k\kubelet.conf`] = "maxPods: 9\n" }, bundle.ImpactRestart, []string{"kubelet"}},
	{"containerd's configuration changes", func(n *node) { n.Files[`C:\k\containerd\containerd_conf.toml`] = "version = 5\n" }, bundle.ImpactRestart, []string{"containerd", "kubelet"}},
	{"the proxy changes", func(n *node) { n.SecretProxy = "http://user:sesame-other@proxy:1" }, bundle.ImpactRestart, []string{"containerd", "kubelet"}},
	{"the proxy is removed", func(n *node) { n.SecretProxy, n.Proxy = "", nil }, bundle.ImpactRestart, []string{"containerd", "kubelet"}},
	{"a secret changes", func(n *node) { n.Secrets[`C:\k\bootstrap-kubeconfig`] = "token: sesame-new\n" }, bundle.ImpactNone, nil},
	{"one CA is added and one removed", func(n *node) { n.CAs = []string{"second CA", "third CA"} }, bundle.ImpactNone, nil},
	{"a service is removed", func(n *node) { n.Services = n.Services[:1] }, bundle.ImpactRestart, nil},
	{"a service is added", func(n *node) {
		n.Services = append(n.Services, bundletest.Service("csi-proxy", []string{`C:\k\csi-proxy.exe`}, nil))
		n.Programs[`C:\k\csi-proxy.exe`] = "csi"
	}, bundle.ImpactNone, nil},
	{"a program is upgraded", func(n *node) { n.Programs[`C:\k\containerd\containerd.exe`] = "containerd 3" }, bundle.ImpactRestart, []string{"containerd", "kubelet"}},
	{"everything", func(n *node) {
		n.Files = map[string]string{`C:\k\kubelet.conf`: "new", `C:\k\ox\x`: "y"}
		n.Programs = map[string]string{`C:\k\kubelet.exe`: "new kubelet"}
		n.Services = []bundle.Service{bundletest.Service("kubelet", []string{`C:\k\kubelet.exe`}, nil, `C:\k\kubelet.conf`, `C:\k\kubelet.exe`)}
		n.CAs, n.Exclusive, n.Secrets, n.Routes = nil, nil, nil, nil
	}, bundle.ImpactRestart, []string{"kubelet"}},
}

func TestAChangeTouchesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	for _, tt := range changes {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, before := newMachine(), newNode()
			m.mustApply(t, before)
			after := before.Changed(tt.change)
			o := m.observe(t, after)
			if o.Impact != tt.impact {
				t.Errorf("impact %s, want %s", o.Impact, tt.impact)
			}
			if diff := cmp.Diff(tt.restarts, o.Restarts); diff != "" {
				t.Errorf("restarts (-want +got):\n%s", diff)
			}
			m.mustApply(t, after)
			fresh := newMachine()
			fresh.mustApply(t, after)
			if diff := differs(fresh.place(), m.withoutShadows()); diff != "" {
				t.Errorf("not as a fresh machine (-want +got):\n%s", diff)
			}
			if o := m.observe(t, after); !o.InSync {
				t.Errorf("still differs: %+v", o.Actions)
			}
			for _, e := range m.events {
				if e.Event == protocol.EventAction && e.Action.Verb == protocol.VerbStop && countStops(m, e.Action.Entry) > 1 {
					t.Errorf("%s stopped more than once", e.Action.Entry)
				}
			}
		})
	}
}

func countStops(m *machine, id bundle.EntryID) int {
	n := 0
	for _, e := range m.events {
		if e.Event == protocol.EventAction && e.Action.Verb == protocol.VerbStop && e.Action.Entry == id {
			n++
		}
	}
	return n
}

// withoutShadows is place without the empty variables that hide those of the last boot.
func (m *machine) withoutShadows() simulation.Snapshot {
	s := m.place()
	hidden := func(line string) bool { return line[len(line)-1] == '=' }
	for name, x := range s.Services {
		x.Environment = slices.DeleteFunc(slices.Clone(x.Environment), hidden)
		x.Delivered = slices.DeleteFunc(slices.Clone(x.Delivered), hidden)
		s.Services[name] = x
	}
	return s
}
