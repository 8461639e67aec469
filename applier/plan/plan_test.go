package plan

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/protocol"
	"wmco/bundle"
)

// observedServices are running services; dependents are by service.
func observedServices(dependents map[string][]string) Observed {
	o := Observed{Files: map[string]ObservedFile{}, Settings: map[bundle.EntryID]Setting{}, Services: map[string]ServiceState{}, Folders: map[string][]FileInfo{}}
	for name, list := range dependents {
		o.Services[name] = ServiceState{ServiceConfig: ServiceConfig{Name: name, Start: bundle.StartAuto}, Status: ServiceRunning, Dependents: list}
	}
	return o
}

// service is one that is not as it should be: its command changes.
func service(name string, impact bundle.Impact) WantedService {
	return WantedService{Config: ServiceConfig{Name: name, CommandLine: `C:\k\new.exe`, Start: bundle.StartAuto}, Present: true, Run: true, Impact: impact}
}

// Maps have another order in each run of the loop.
func TestDependentsStopForTheHighestImpactWhateverTheOrder(t *testing.T) {
	observed := observedServices(map[string][]string{
		"a": {"c"}, "b": {"c"}, "c": {"d"}, "d": nil, // d depends on c, and c on both
	})
	target := Target{Services: []WantedService{service("a", bundle.ImpactRestart), service("b", bundle.ImpactDrain)}}
	want := map[bundle.EntryID]bundle.Impact{"service a": bundle.ImpactRestart, "service b": bundle.ImpactDrain, "service c": bundle.ImpactDrain, "service d": bundle.ImpactDrain}
	for range 100 {
		stops, order := map[bundle.EntryID]bundle.Impact{}, []bundle.EntryID{}
		for _, s := range Make(&target, observed, Circumstances{Owned: map[string]bool{}}).Steps {
			if s.Verb == protocol.VerbStop {
				stops[s.Entry] = s.Impact
				order = append(order, s.Entry)
			}
		}
		if !maps.Equal(stops, want) {
			t.Fatalf("impacts of the stops (-want +got):\n%s", cmp.Diff(want, stops))
		}
		if diff := cmp.Diff([]bundle.EntryID{"service d", "service c", "service b", "service a"}, order); diff != "" {
			t.Fatalf("order of the stops (-want +got):\n%s", diff)
		}
	}
}

func TestTheServiceOfTheProgramItselfIsNeverStopped(t *testing.T) {
	observed := observedServices(map[string][]string{"a": {"self"}, "self": nil})
	target := Target{Services: []WantedService{service("a", bundle.ImpactRestart), service("self", bundle.ImpactRestart)}}
	for _, s := range Make(&target, observed, Circumstances{Owned: map[string]bool{}, Self: "SELF"}).Steps {
		if s.Entry == "service self" && s.Verb != protocol.VerbPut {
			t.Errorf("%s %s", s.Verb, s.Entry)
		}
	}
}

func TestSummaryOfAPlan(t *testing.T) {
	h := newPlannedHost()
	if got := Make(&h.target, h.observed, h.c).SummaryLine(); got != "0 actions, impact none" {
		t.Errorf("nothing to do: %q", got)
	}
	h.put(confFile)
	h.observed.changeService("containerd", func(s *ServiceState) { s.CommandLine = "other" })
	p := Make(&h.target, h.observed, h.c)
	if got, want := p.SummaryLine(), "6 actions, impact drain, restarts containerd, kubelet"; got != want {
		t.Errorf("%q, want %q\n%s", got, want, strings.Join(shownPlan(p), "\n"))
	}
}

// TestReaderServices: a file that is absent is written before its reader stops, any other one while the reader is stopped.
func TestReaderServices(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*plannedHost)
		want   []string
	}{
		"a file is written before its reader stops":     {func(h *plannedHost) { h.remove(confFile) }, []string{"kubelet"}},
		"a file is written while its reader is stopped": {func(h *plannedHost) { h.put(confFile) }, nil},
	} {
		h := newPlannedHost()
		tt.change(h)
		if diff := cmp.Diff(tt.want, Make(&h.target, h.observed, h.c).ReaderServices()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
