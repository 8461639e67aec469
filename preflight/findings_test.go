package preflight

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/layout"
)

const (
	api    = "https://api-int.example.com:6443"
	mirror = "https://mirror.example.com/v2/pause/manifests/3.9"
	source = "https://mcr.microsoft.com/v2/oss/kubernetes/pause/manifests/3.9"
	secret = "Basic dXNlcjpwYXNz"
)

func question() Question {
	return Question{
		Schema: Schema, Address: "10.0.0.5", VXLANPort: 9898, API: []string{api},
		Places: []Place{{Manifest: mirror, Authorization: secret}, {Manifest: source}},
	}
}

// ports returns the ports that a host is asked for, all free.
func ports() []Port {
	var all []Port
	for _, p := range layout.Ports() {
		all = append(all, Port{p.Number, PortFree})
	}
	return all
}

// healthy returns the answer of a host that lacks nothing.
func healthy() Answer {
	skew := 0.4
	return Answer{
		Schema: Schema,
		Facts: bundle.Facts{
			Schema: bundle.FactsSchema, HostName: "win1", Addresses: []string{"10.0.0.5"}, OSBuild: "10.0.20348", Features: []string{"Containers"},
			DefaultRoute: bundle.DefaultRoute{Address: "10.0.0.5", Gateway: "10.0.0.1"}, DefenderRunning: true,
		},
		Machine: Machine{
			Update: 2340, Edition: "ServerDatacenter", Installation: "Server Core", Locale: "en-US", FreeBytes: 60 << 30, PageFile: true, Excluded: true,
			Ports:   ports(),
			Folders: []Folder{{`C:\ProgramData\wmco`, true}},
		},
		Names:            Names{Full: "win1.example.com", Addresses: []string{"10.0.0.5"}, Pointers: []string{"win1.example.com."}},
		Reached:          []Reach{{Kind: ReachAPI, URL: api}, {Kind: ReachRegistry, URL: mirror}, {Kind: ReachRegistry, URL: source}},
		ClockSkewSeconds: &skew,
	}
}

// fault is one thing that a host lacks.
type fault struct {
	name   string
	change func(*Question, *Answer)
	want   string
}

func skewed(seconds float64) func(*Question, *Answer) {
	return func(_ *Question, a *Answer) { a.ClockSkewSeconds = &seconds }
}

func answers(i int, p Problem) func(*Question, *Answer) {
	return func(_ *Question, a *Answer) { a.Reached[i].Problem, a.Reached[i].Text = p, "why" }
}

// identity is an answer of the metadata of a cloud.
func identity(p Problem) func(*Question, *Answer) {
	return func(q *Question, a *Answer) {
		q.Identity = IdentityOf(bundle.PlatformAWS, "")
		a.Reached = append(a.Reached, Reach{Kind: ReachIdentity, URL: q.Identity.URL, Problem: p, Text: "why"})
	}
}

// runningKubelet is a kubelet on its port, with or without a program of this project.
func runningKubelet(program string) func(*Question, *Answer) {
	return func(q *Question, a *Answer) {
		q.Node, a.Machine.Services = true, []Service{{Name: "kubelet", Program: program, Running: true}}
		a.Machine.Ports[0].State = PortTaken
	}
}

func machine(change func(*Machine)) func(*Question, *Answer) {
	return func(_ *Question, a *Answer) { change(&a.Machine) }
}

func service(name, program string) func(*Question, *Answer) {
	return machine(func(m *Machine) { m.Services = []Service{{Name: name, Program: program}} })
}

func faults() []fault {
	return []fault{
		{"Windows Server 2016", func(_ *Question, a *Answer) { a.Facts.OSBuild = "10.0.14393" }, "error " + reason.WindowsBuildUnsupported},
		{"Windows 11", machine(func(m *Machine) { m.Installation = "Client" }), "error " + reason.WindowsEditionUnsupported},
		{"an old update with a custom VXLAN port", machine(func(m *Machine) { m.Update = 680 }), "error " + reason.WindowsUpdateMissing},
		{"an old update on vSphere", func(q *Question, a *Answer) { q.VXLANPort, q.VSphere, a.Machine.Update = 0, true, 680 }, "error " + reason.WindowsUpdateMissing},
		{"Windows Server 2025 before its first supported update", func(_ *Question, a *Answer) { a.Facts.OSBuild, a.Machine.Update = "10.0.26100", 32859 }, "warning " + reason.WindowsUpdateMissing},
		{"a static address on Windows Server 2019", func(_ *Question, a *Answer) {
			a.Facts.OSBuild, a.Machine.StaticAddresses = "10.0.17763", []string{"10.0.0.5"}
		}, "warning " + reason.DevicelessNICsEnabled},
		{"a static address on Windows Server 2025", func(_ *Question, a *Answer) {
			a.Facts.OSBuild, a.Machine.Update, a.Machine.StaticAddresses = "10.0.26100", 40000, []string{"10.0.0.5"}
		}, "warning " + reason.DevicelessNICsEnabled},
		{"a name of 16 characters", func(_ *Question, a *Answer) {
			a.Facts.HostName, a.Names.Pointers = "abcdefghijklmnop", []string{"abcdefghijklmnop."}
		}, "error " + reason.ComputerNameInvalid},
		{"a name that DNS does not know", func(_ *Question, a *Answer) { a.Names.Addresses = nil }, "warning " + reason.HostNameUnresolvable},
		{"a name with another address", func(_ *Question, a *Answer) { a.Names.Addresses = []string{"10.9.9.9"} }, "warning " + reason.HostNameOfAnotherAddress},
		{"an address without a name", func(_ *Question, a *Answer) { a.Names.Pointers = nil }, "info " + reason.ReverseNameMissing},
		{"an address with another name", func(_ *Question, a *Answer) { a.Names.Pointers = []string{"other.example.com."} }, "info " + reason.ReverseNameDiffers},
		{"no default route", func(_ *Question, a *Answer) { a.Facts.DefaultRoute = bundle.DefaultRoute{} }, "error " + reason.DefaultRouteMissing},
		{"a taken port", machine(func(m *Machine) { m.Ports[0].State = PortTaken }), "error " + reason.PortTaken},
		{"a kubelet of another maker on the port", runningKubelet(`D:\kubernetes\kubelet.exe`), "error " + reason.PortTaken},
		{"an excluded port", machine(func(m *Machine) { m.Ports[1].State = PortExcluded }), "error " + reason.PortExcluded},
		{"no feature", func(_ *Question, a *Answer) { a.Facts.Features = nil }, "info " + reason.ContainersFeatureMissing},
		{"a pending boot", func(_ *Question, a *Answer) { a.Facts.PendingBoots = []bundle.BootReason{bundle.BootForUpdates} }, "warning " + reason.BootPending},
		{"another containerd", service("containerd", `C:\Program Files\containerd\containerd.exe`), "error " + reason.ForeignContainerd},
		{"Docker", service("docker", `C:\Windows\System32\dockerd.exe`), "warning " + reason.ForeignDocker},
		{"a kubelet", service("kubelet", `C:\k\kubelet.exe`), "warning " + reason.ForeignKubelet},
		{"a kubelet of another cluster", func(_ *Question, a *Answer) {
			a.Machine.Services = []Service{{Name: "kubelet", Program: `C:\k\kubelet.exe`}}
			a.Facts.Kubelet = bundle.Kubelet{Program: `C:\k\kubelet.exe`, Server: "https://api-int.other.example.com:6443"}
		}, "error " + reason.HostOfAnotherCluster},
		{"little room", machine(func(m *Machine) { m.FreeBytes = 6 << 30 }), "warning " + reason.DiskNearlyFull},
		{"no room", machine(func(m *Machine) { m.FreeBytes = 1 << 30 }), "error " + reason.DiskNearlyFull},
		{"no page file", machine(func(m *Machine) { m.PageFile = false }), "warning " + reason.PageFileMissing},
		{"a clock that is behind", skewed(-40), "warning " + reason.ClockSkew},
		{"a clock an hour ahead", skewed(3600), "error " + reason.ClockSkew},
		{"api-int without an address", answers(0, ProblemName), "error " + reason.APIServerUnresolvable},
		{"api-int that refuses", answers(0, ProblemConnect), "error " + reason.APIServerUnreachable},
		{"an intercepted API server", answers(0, ProblemCertificate), "error " + reason.APIServerCertificate},
		{"an API server that answers otherwise", answers(0, ProblemAnswer), "warning " + reason.APIServerAnswer},
		{"a mirror without an address", answers(1, ProblemName), "warning " + reason.RegistryUnresolvable},
		{"a mirror that refuses", answers(1, ProblemConnect), "warning " + reason.RegistryUnreachable},
		{"a mirror of another CA", answers(1, ProblemCertificate), "warning " + reason.RegistryCertificate},
		{"a mirror that denies", answers(1, ProblemDenied), "warning " + reason.RegistryDenied},
		{"a mirror that answers otherwise", answers(1, ProblemAnswer), "warning " + reason.RegistryAnswer},
		{"a mirror without the image", answers(1, ProblemMissing), "warning " + reason.PauseImageMissing},
		{"a proxy that refuses", answers(1, ProblemProxy), "warning " + reason.ProxyUnusable},
		{"a machine without a role", identity(ProblemMissing), "info " + reason.MachineIdentityMissing},
		{"an account without a scope", identity(ProblemDenied), "info " + reason.MachineIdentityMissing},
		{"metadata that are not reached", identity(ProblemConnect), "warning " + reason.MetadataUnreachable},
		{"an answer without the identity", func(q *Question, _ *Answer) { q.Identity = IdentityOf(bundle.PlatformGCP, "") }, "warning " + reason.MetadataUnreachable},
		{"an answer that leaves a mirror out", func(_ *Question, a *Answer) { a.Reached = slices.Delete(a.Reached, 1, 2) }, "warning " + reason.RegistryUnreachable},
		{"FIPS", machine(func(m *Machine) { m.FIPS = true }), "info " + reason.FIPSEnabled},
		{"WDAC", machine(func(m *Machine) { m.CodeIntegrity = true }), "warning " + reason.CodeIntegrityEnforced},
		{"AppLocker", machine(func(m *Machine) { m.AppLocker = true }), "warning " + reason.AppLockerEnforced},
		{"another locale", machine(func(m *Machine) { m.Locale = "de-DE" }), "info " + reason.LocaleUntested},
		{"no exclusion", machine(func(m *Machine) { m.Excluded = false }), "info " + reason.DefenderScansContainerd},
		{"a folder of a user", machine(func(m *Machine) { m.Folders[0].Trusted = false }), "error " + reason.FolderNotTrusted},
		{"facts that cannot be read", func(_ *Question, a *Answer) { a.Unread = []string{"features: access denied"} }, "warning " + reason.PreflightIncomplete},
	}
}

func short(all bundle.Findings) []string {
	var texts []string
	for _, f := range all {
		texts = append(texts, fmt.Sprintf("%s %s", f.Severity, f.Reason))
	}
	return texts
}

// TestTheKubeletOfAHostThatJoinsHasItsPort: what the operator has started is not in its own way.
func TestTheKubeletOfAHostThatJoinsHasItsPort(t *testing.T) {
	q, a := question(), healthy()
	runningKubelet(`C:\k\kube-log-runner.exe`)(&q, &a)
	if got := Findings(q, a); len(got) > 0 {
		t.Errorf("got %+v", got)
	}
}

func TestAHealthyHostHasNoFinding(t *testing.T) {
	if got := Findings(question(), healthy()); len(got) > 0 {
		t.Errorf("got %+v", got)
	}
}

// TestOtherWindowsIsHealthy: a fault in one cluster, or on one Windows, is none elsewhere.
func TestOtherWindowsIsHealthy(t *testing.T) {
	for name, change := range map[string]func(*Question, *Answer){
		"Windows Server 2019":                     func(_ *Question, a *Answer) { a.Facts.OSBuild, a.Machine.Update = "10.0.17763", 1 },
		"Windows Server 2025":                     func(_ *Question, a *Answer) { a.Facts.OSBuild, a.Machine.Update = "10.0.26100", 32860 },
		"the first update with a VXLAN port":      machine(func(m *Machine) { m.Update = 681 }),
		"an old update where no port is set":      func(q *Question, a *Answer) { q.VXLANPort, a.Machine.Update = 0, 680 },
		"an old update with the default port":     func(q *Question, a *Answer) { q.VXLANPort, a.Machine.Update = 4789, 680 },
		"a long name where joining renames":       func(q *Question, a *Answer) { q.RenamesComputer, a.Facts.HostName = true, "abcdefghijklmnop" },
		"a static address on Windows Server 2022": machine(func(m *Machine) { m.StaticAddresses = []string{"10.0.0.5"} }),
		"a static address without device-less cards": func(_ *Question, a *Answer) {
			a.Facts.OSBuild, a.Machine.StaticAddresses, a.Machine.DevicelessNICsDisabled = "10.0.17763", []string{"10.0.0.5"}, true
		},
		"a static address of another card": func(_ *Question, a *Answer) {
			a.Facts.OSBuild, a.Machine.StaticAddresses = "10.0.17763", []string{"192.168.0.5"}
		},
		"a static address of a node": func(q *Question, a *Answer) {
			q.Node, a.Facts.OSBuild, a.Machine.StaticAddresses = true, "10.0.17763", []string{"10.0.0.5"}
		},
		"the identity of a machine":             identity(ProblemNone),
		"no Defender and no exclusion":          func(_ *Question, a *Answer) { a.Facts.DefenderRunning, a.Machine.Excluded = false, false },
		"its own containerd":                    service("containerd", `C:\k\containerd\containerd.exe`),
		"a clock with the latency of a request": skewed(-9),
		"no API server with a time":             func(_ *Question, a *Answer) { a.ClockSkewSeconds = nil },
		"a name of 15 characters": func(_ *Question, a *Answer) {
			a.Facts.HostName, a.Names.Pointers = "abcdefghijklmno", []string{"abcdefghijklmno."}
		},
	} {
		q, a := question(), healthy()
		change(&q, &a)
		if got := Findings(q, a); len(got) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestEachFaultIsOneFindingWithAFix(t *testing.T) {
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			q, a := question(), healthy()
			f.change(&q, &a)
			got := Findings(q, a)
			if diff := cmp.Diff([]string{f.want}, short(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, x := range got {
				if x.Fix == "" || x.Node != q.Address || strings.Contains(x.Message, secret) {
					t.Errorf("got %+v", x)
				}
			}
		})
	}
}

func TestEveryReasonHasAFault(t *testing.T) {
	var documented []string
	for _, area := range reason.Areas() {
		if area.Title == "Hosts before they join" {
			for _, e := range area.Entries {
				documented = append(documented, e.Reason)
			}
		}
	}
	if len(documented) == 0 {
		t.Fatal("the area is not documented")
	}
	for _, r := range documented {
		if !slices.ContainsFunc(faults(), func(f fault) bool { return strings.HasSuffix(f.want, " "+r) }) {
			t.Errorf("no fault has the reason %s", r)
		}
	}
}

func TestNoPlaceWithThePauseImageIsAnError(t *testing.T) {
	q, a := question(), healthy()
	answers(1, ProblemMissing)(&q, &a)
	answers(2, ProblemConnect)(&q, &a)
	if diff := cmp.Diff([]string{"error " + reason.PauseImageMissing, "error " + reason.RegistryUnreachable}, sorted(short(Findings(q, a)))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

func TestAQuestionIsNotPrinted(t *testing.T) {
	for _, verb := range []string{"%v", "%+v", "%s"} {
		if text := fmt.Sprintf(verb, question()); strings.Contains(text, secret) {
			t.Errorf("%s prints %s", verb, text)
		}
	}
	bad := `{"schema": 1, "places": [{"authorization": "` + secret + `"}`
	if _, err := DecodeQuestion(strings.NewReader(bad)); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v", err)
	}
}

func TestQuestionsAndAnswersOfAnotherVersionAreRefused(t *testing.T) {
	q, a := question(), healthy()
	q.Schema, a.Schema = Schema+1, Schema+1
	text, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeQuestion(strings.NewReader(string(text))); err == nil {
		t.Error("the question is accepted")
	}
	if text, err = json.Marshal(a); err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeAnswer(text); err == nil {
		t.Error("the answer is accepted")
	}
	if _, err := DecodeQuestion(strings.NewReader(strings.Repeat("x", maxQuestion+1))); err == nil {
		t.Error("a question without an end is accepted")
	}
}

func TestURLsAreShownWithoutPasswords(t *testing.T) {
	if got := Shown("https://user:pass@mirror.example.com:5000/v2/x?token=y#z"); got != "https://mirror.example.com:5000/v2/x" {
		t.Errorf("got %s", got)
	}
}

// TestEachPortIsChecked: a finding names the port and the service that needs it. The service of the node itself may have its port.
func TestEachPortIsChecked(t *testing.T) {
	for i, p := range layout.Ports() {
		for state, why := range map[PortState]string{PortTaken: reason.PortTaken, PortExcluded: reason.PortExcluded} {
			a := healthy()
			a.Machine.Ports[i].State = state
			all := Findings(question(), a)
			if len(all) != 1 || all[0].Reason != why || !strings.Contains(all[0].Message, fmt.Sprintf("TCP port %d", p.Number)) || !strings.Contains(all[0].Message, p.Service) {
				t.Errorf("port %d is %s: %+v", p.Number, state, all)
			}
		}
		q, a := question(), healthy()
		q.Node = true
		a.Machine.Services = []Service{{Name: p.Service, Program: `C:\k\` + p.Service + `.exe`, Running: true}}
		a.Machine.Ports[i].State = PortTaken
		if all := Findings(q, a); len(all) != 0 {
			t.Errorf("%s runs and has port %d: %+v", p.Service, p.Number, all)
		}
	}
}
