package agent

import (
	"slices"
	"strings"
	"testing"
	"time"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/hostsim/simulation"
	"wmco/layout"
)

const (
	proxyProgram   = `C:\k\kube-proxy.exe`
	overlayProgram = `C:\k\hybrid-overlay-node.exe`
	networkProgram = `C:\Windows\System32\svchost.exe`
)

func TestNamesOfTheHostNetworkAreThoseOfTheLayout(t *testing.T) {
	got := []string{kubeProxyService, overlayService, overlayNetwork}
	if want := []string{layout.KubeProxy, layout.HybridOverlay, layout.OverlayNetwork}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// withHostNetwork lets the host have the Host Network Service, and a bundle with the services that use it.
func withHostNetwork(t *testing.T) *world {
	w := newWorld(t)
	w.bundle = w.bundle.Changed(func(n *bundletest.Node) {
		n.Programs[proxyProgram], n.Programs[overlayProgram] = "kube-proxy", "hybrid-overlay-node"
		n.Services = append(n.Services,
			bundletest.Service(overlayService, []string{overlayProgram}, []string{"kubelet"}, overlayProgram),
			bundletest.Service(kubeProxyService, []string{proxyProgram}, []string{overlayService}, proxyProgram))
	})
	for _, program := range []string{proxyProgram, overlayProgram, networkProgram} {
		w.host.Place(program, bundle.AccessUsers, strings.TrimSuffix(bundle.Base(program), ".exe"))
	}
	if err := w.host.PutService(t.Context(), plan.ServiceConfig{Name: hostNetworkService, CommandLine: networkProgram}); err != nil {
		t.Fatal(err)
	}
	if err := w.host.StartService(t.Context(), hostNetworkService); err != nil {
		t.Fatal(err)
	}
	w.publish(bundle.ImpactRestart)
	if got := w.turn(); got.State != published.StateApplied {
		t.Fatalf("%s: %s", got.State, got.Message)
	}
	w.cluster.events, w.cluster.reports = nil, nil
	w.host.ClearLog()
	return w
}

// crashHostNetwork ends the Host Network Service, and lets Windows start it again.
func (w *world) crashHostNetwork() {
	w.t.Helper()
	if err := w.host.StopService(w.t.Context(), hostNetworkService); err != nil {
		w.t.Fatal(err)
	}
	w.turn() // while it does not run
	if err := w.host.StartService(w.t.Context(), hostNetworkService); err != nil {
		w.t.Fatal(err)
	}
	w.host.ClearLog()
	w.turn()
}

// setOverlay makes the overlay network of the host, or removes it.
func (w *world) setOverlay(exists bool) {
	w.t.Helper()
	err := w.host.Edit(w.t.Context(), func(s *simulation.State) {
		s.Facts.Networks = nil
		if exists {
			s.Facts.Networks = []bundle.HNSNetwork{{Name: overlayNetwork}}
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestKubeProxyIsRestartedAfterACrashOfTheHostNetworkService(t *testing.T) {
	w := withHostNetwork(t)
	w.setOverlay(true)
	w.crashHostNetwork()
	if w.starts(kubeProxyService) != 1 || w.starts(overlayService) != 0 {
		t.Errorf("kube-proxy was started %d times, hybrid-overlay-node %d times", w.starts(kubeProxyService), w.starts(overlayService))
	}
	if e := w.cluster.events; len(e) != 1 || e[0].Reason != EventNetworkRestarted || !e[0].Warning || e[0].Message != "the Host Network Service has crashed, so kube-proxy was restarted" {
		t.Errorf("events %+v", e)
	}
	for range 3 {
		w.clock.Pass(time.Minute)
		if got := w.turn(); got.NetworkRestarts != 1 || got.NetworkUnstable || len(got.Crashed) != 0 {
			t.Errorf("report %+v", got)
		}
	}
	if w.starts(kubeProxyService) != 1 {
		t.Errorf("kube-proxy was started %d times after one crash", w.starts(kubeProxyService))
	}
}

func TestHybridOverlayIsRestartedWhereItsNetworkIsMissing(t *testing.T) {
	w := withHostNetwork(t)
	w.setOverlay(false)
	w.crashHostNetwork()
	if w.starts(kubeProxyService) != 1 || w.starts(overlayService) != 1 {
		t.Errorf("kube-proxy was started %d times, hybrid-overlay-node %d times", w.starts(kubeProxyService), w.starts(overlayService))
	}
	if e := w.cluster.events; len(e) != 1 || e[0].Message != "the Host Network Service has crashed, so kube-proxy and hybrid-overlay-node were restarted" {
		t.Errorf("events %+v", e)
	}
}

func TestKubeProxyIsRestartedThreeTimesAnHour(t *testing.T) {
	w := withHostNetwork(t)
	w.setOverlay(true)
	for n := 1; n <= networkRestartLimit; n++ {
		w.crashHostNetwork()
		w.clock.Pass(time.Minute)
		if w.starts(kubeProxyService) != 1 {
			t.Fatalf("crash %d: kube-proxy was started %d times", n, w.starts(kubeProxyService))
		}
	}
	w.cluster.events = nil
	w.crashHostNetwork()
	for range 3 {
		w.clock.Pass(time.Minute)
		got := w.turn()
		if !got.NetworkUnstable || got.NetworkRestarts != networkRestartLimit {
			t.Errorf("report %+v", got)
		}
	}
	if text := w.cluster.reports[len(w.cluster.reports)-1].Message; !strings.Contains(text, "crashes again and again (kube-proxy was restarted 3 times)") {
		t.Errorf("condition %q", text)
	}
	if e := w.cluster.events; w.starts(kubeProxyService) != 0 || len(e) != 1 || e[0].Reason != EventNetworkUnstable {
		t.Errorf("kube-proxy was started %d times, events %+v", w.starts(kubeProxyService), e)
	}
	w.clock.Pass(networkRestartTime)
	if got := w.turn(); got.NetworkUnstable || got.NetworkRestarts != networkRestartLimit+1 || w.starts(kubeProxyService) != 1 {
		t.Errorf("an hour later: started %d times, %+v", w.starts(kubeProxyService), got)
	}
}

func TestNothingIsRestartedOnAPausedNodeAndAfterABoot(t *testing.T) {
	w := withHostNetwork(t)
	w.setOverlay(true)
	w.cluster.node.Paused = true
	w.crashHostNetwork()
	if w.starts(kubeProxyService) != 0 || len(w.cluster.events) != 0 {
		t.Errorf("paused: kube-proxy was started %d times, events %+v", w.starts(kubeProxyService), w.cluster.events)
	}
	w.cluster.node.Paused = false
	if w.turn(); w.starts(kubeProxyService) != 1 {
		t.Errorf("resumed: kube-proxy was started %d times", w.starts(kubeProxyService))
	}
	w.boot() // with other processes
	if err := w.host.StartService(t.Context(), hostNetworkService); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.turn()
	w.host.ClearLog()
	w.cluster.events = nil
	if w.turn(); w.starts(kubeProxyService) != 0 || len(w.cluster.events) != 0 {
		t.Errorf("booted: kube-proxy was started %d times, events %+v", w.starts(kubeProxyService), w.cluster.events)
	}
}
