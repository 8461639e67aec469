package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

const (
	confFile   = `C:\k\kubelet.conf`
	tokenFile  = `C:\k\token`
	cniFolder  = `C:\k\cni`
	cniFile    = `C:\k\cni\cni.conf`
	program    = `C:\k\kubelet.exe`
	logFolder  = `C:\var\log\kubelet`
	network    = "OVNKubernetesHNSNetwork"
	proxyName  = "HTTP_PROXY"
	proxyValue = "http://proxy.example.com"
)

// tokenDigest is that of a secret file, secretDigest that of a secret variable.
var tokenDigest, secretDigest = bundle.Key("key").Of([]byte("token")), bundle.Key("key").Of([]byte("secret"))

// contents are those that a host knows of everything in testBundle.
func contents() Contents { return Contents{tokenDigest: ContentOf([]byte("token"))} }

// testBundle has an entry of each sort: two services, of which one depends on the other, and what they read.
func testBundle() bundle.Bundle {
	text := func(s string) (bundle.Digest, int64) { return bundle.Of([]byte(s)), int64(len(s)) }
	conf, confSize := text("conf")
	cni, cniSize := text("cni")
	exe, exeSize := text("exe")
	return bundle.Bundle{
		Cluster: bundle.Layer{
			Kind:        bundle.LayerCluster,
			Directories: []bundle.Directory{{Path: cniFolder, Access: bundle.AccessAdmins, Exclusive: true}},
			Files: []bundle.File{
				{Path: confFile, Digest: conf, Size: confSize, Access: bundle.AccessUsers, Impact: bundle.ImpactRestart},
				{Path: tokenFile, Digest: tokenDigest, Secret: true, Access: bundle.AccessAdmins, Impact: bundle.ImpactNone},
			},
			State:        []bundle.State{{Path: `C:\var\lib\kubelet`}, {Path: `C:\k\pki`, Pattern: "*.pem", Keep: 2}},
			Environments: []bundle.Environment{{Name: "other"}, {Name: "proxy", Variables: []bundle.Variable{{Name: proxyName, Value: proxyValue}}}},
			Services: []bundle.Service{
				{Name: "containerd", Start: bundle.StartAuto, Argv: []string{`C:\k\containerd.exe`}, Impact: bundle.ImpactDrain},
				{
					Name: "kubelet", Start: bundle.StartAuto, Argv: []string{program, "--v=2"}, Dependencies: []string{"containerd"}, Environment: "proxy",
					Reads: []string{confFile, program}, Logs: []bundle.Log{{Path: logFolder + `\kubelet.log`}}, Impact: bundle.ImpactRestart,
				},
			},
			Payload: []bundle.Payload{{Path: program, Component: "kubelet", Digest: exe, Size: exeSize, Impact: bundle.ImpactRestart}, {Path: `C:\k\unknown.exe`, Component: "x"}},
			Routes:  []bundle.Route{{Destination: "169.254.169.254/32", Via: "10.0.0.1", Impact: bundle.ImpactNone}},
			Features: []bundle.Feature{
				{Name: "Containers", Impact: bundle.ImpactReboot},
			},
		},
		Node: bundle.Layer{
			Kind:      bundle.LayerNode,
			Files:     []bundle.File{{Path: cniFile, Digest: cni, Size: cniSize, Access: bundle.AccessUsers, Impact: bundle.ImpactNone}},
			Endpoints: []bundle.Endpoint{{Name: "VIPEndpoint", Network: network, Compartment: 1, Impact: bundle.ImpactNone}},
		},
	}
}

// inPlace is the observation of a host that has everything of a target, and whose services run.
func inPlace(t *Target) Observed {
	o := observedServices(nil)
	for _, f := range t.Files {
		access := f.Access
		if access == "" {
			access = f.Inherited
		}
		putFile(o, FileInfo{Path: f.Path, Kind: f.Kind, Size: f.Content.Size, Access: access}, f.Content.SHA256)
	}
	for _, s := range t.Settings {
		o.Settings[s.ID()] = Setting{Kind: s.Kind, Name: s.Name, Value: s.Value.Text, Present: true}
	}
	for _, s := range t.Services {
		state := ServiceState{ServiceConfig: s.Config, Status: ServiceRunning}
		for _, v := range s.Variables {
			state.Environment = append(state.Environment, v.Name+"="+v.Value.Text)
		}
		for _, other := range t.Services {
			if slices.Contains(other.Config.Dependencies, s.Config.Name) {
				state.Dependents = append(state.Dependents, other.Config.Name)
			}
		}
		o.Services[s.Config.Name] = state
	}
	return o
}

// putFile puts something at a path of an observation, and into the list of its folder.
func putFile(o Observed, info FileInfo, sum string) {
	key, dir := bundle.FoldPath(info.Path), bundle.FoldPath(bundle.Dir(info.Path))
	o.Folders[dir] = slices.DeleteFunc(o.Folders[dir], func(f FileInfo) bool { return f.Path == info.Path })
	if info.Kind == FileAbsent {
		delete(o.Files, key)
		return
	}
	o.Files[key] = ObservedFile{FileInfo: info, SHA256: sum}
	if inRoots(info.Path) && bundle.Dir(info.Path) != `C:\` {
		o.Folders[dir] = append(o.Folders[dir], info)
	}
}

func (observed Observed) changeService(name string, change func(*ServiceState)) {
	s := observed.Services[name]
	change(&s)
	observed.Services[name] = s
}

// shownPlan is a plan as sentences.
func shownPlan(p Plan) []string {
	var lines []string
	for _, a := range p.ShownActions() {
		lines = append(lines, fmt.Sprintf("%s %s: %s, %s", a.Verb, a.Entry, a.Reason, a.Impact))
	}
	for _, part := range []struct {
		what string
		ids  []bundle.EntryID
	}{{"adopt", p.Adopt}, {"pending", p.Pending}, {"skipped", p.Skipped}, {"waiting", p.Waiting}} {
		for _, id := range part.ids {
			lines = append(lines, part.what+": "+string(id))
		}
	}
	for _, m := range p.Missing {
		lines = append(lines, "missing: "+string(m.Digest))
	}
	for _, path := range p.Foreign {
		lines = append(lines, "foreign: "+path)
	}
	for _, path := range p.Leftovers {
		lines = append(lines, "leftover: "+path)
	}
	if p.Reboot {
		lines = append(lines, "a boot is needed")
	}
	return lines
}

// plannedHost is a host that has everything of testBundle, managed, before a case changes it.
type plannedHost struct {
	target   Target
	observed Observed
	c        Circumstances
}

func newPlannedHost() *plannedHost {
	t := NewTarget(testBundle(), contents())
	return &plannedHost{target: t, observed: inPlace(&t), c: Circumstances{Owned: t.FoldedNames(), Networks: []bundle.HNSNetwork{{Name: network}}}}
}

// remove takes a path away from the host.
func (h *plannedHost) remove(path string) { putFile(h.observed, FileInfo{Path: path}, "") }

// put puts a file with another content on the host.
func (h *plannedHost) put(path string) {
	putFile(h.observed, FileInfo{Path: path, Kind: FileRegular, Size: 1, Access: bundle.AccessUsers}, "another")
}

func (h *plannedHost) putFolder(path string, access bundle.Access) {
	putFile(h.observed, FileInfo{Path: path, Kind: FileDirectory, Access: access}, "")
}

func (h *plannedHost) setAccess(path string, access bundle.Access) {
	f := h.observed.FileAt(path)
	f.Access = access
	putFile(h.observed, f.FileInfo, f.SHA256)
}

func (h *plannedHost) setSetting(id bundle.EntryID, change func(*Setting)) {
	s := h.observed.Settings[id]
	change(&s)
	h.observed.Settings[id] = s
}

// drop removes entries from the bundle that the host had: they are managed and no longer wanted.
func (h *plannedHost) drop(change func(*bundle.Bundle)) {
	b := testBundle()
	change(&b)
	t := NewTarget(b, contents())
	t.DropUnwanted([]bundle.Bundle{testBundle()}, nil, nil)
	h.target = t
}

type planCase struct {
	name   string
	change func(*plannedHost)
	want   []string
}

func runPlanCases(t *testing.T, cases []planCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			h := newPlannedHost()
			tt.change(h)
			services := maps.Clone(h.observed.Services)
			wanted := slices.Clone(h.target.Services)
			got := Make(&h.target, h.observed, h.c)
			if diff := cmp.Diff(tt.want, shownPlan(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(services, h.observed.Services) + cmp.Diff(wanted, h.target.Services); diff != "" {
				t.Errorf("Make changes its arguments (-before +after):\n%s", diff)
			}
		})
	}
}
