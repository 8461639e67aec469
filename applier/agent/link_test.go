package agent

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/hostsim/simulation"
)

// TestEveryKindOfEntryIsDecided: a new kind of entry is listed here.
func TestEveryKindOfEntryIsDecided(t *testing.T) {
	cuts := map[bundle.EntryKind]bool{
		bundle.KindTrustedCA: true, bundle.KindRoute: true, bundle.KindFirewall: true, bundle.KindNetwork: true, bundle.KindHostName: true,
		// These cut the link where a service of the link reads them, and so restarts.
		bundle.KindDirectory: false, bundle.KindFile: false, bundle.KindState: false, bundle.KindEnvironment: false, bundle.KindService: false, bundle.KindPayload: false,
		// Services have their own environment: the one of the host is for others.
		bundle.KindVariable: false,
		// A feature, a key with which people log in, an exclusion and a policy about updates change no connection, and an endpoint on a network of pods is not the host's.
		bundle.KindFeature: false, bundle.KindAuthorizedKey: false, bundle.KindExclusion: false, bundle.KindEndpoint: false, bundle.KindPolicy: false,
	}
	for _, k := range bundle.Kinds() {
		kind := k.Kind
		want, decided := cuts[kind]
		if !decided {
			t.Errorf("%s: not decided", kind)
		}
		o := protocol.Observation{Actions: []protocol.Action{{Entry: kind.ID("x")}}}
		if got := mayCutConnection(o); got != want {
			t.Errorf("%s: %t", kind, got)
		}
	}
	for _, name := range []string{"containerd", "kubelet", "hybrid-overlay-node"} {
		if !mayCutConnection(protocol.Observation{Restarts: []string{"a", name}}) {
			t.Errorf("a restart of %s", name)
		}
	}
}

// linkChange is one kind of change.
type linkChange struct {
	name   string
	change func(*bundletest.Node)
	// cuts reports whether it can cut the host off, asks whether the Node confirms it, boots whether it takes effect with a boot.
	cuts, asks, boots bool
}

func linkChanges() []linkChange {
	file := func(path string) func(*bundletest.Node) {
		return func(n *bundletest.Node) { n.Files[path] = "changed\n" }
	}
	program := func(path string) func(*bundletest.Node) {
		return func(n *bundletest.Node) { n.Programs[path] = "newer" }
	}
	argument := func(service string) func(*bundletest.Node) {
		return func(n *bundletest.Node) {
			i := slices.IndexFunc(n.Services, func(s bundle.Service) bool { return s.Name == service })
			n.Services[i].Argv = append(slices.Clone(n.Services[i].Argv), "--verbose")
		}
	}
	return []linkChange{
		{"mirrors", file(mirrors), false, false, false},
		{"the kubelet's configuration", file(kubeletConf), true, true, false},
		{"containerd's configuration", file(`C:\k\containerd\containerd_conf.toml`), true, true, false},
		{"the exporter's configuration", file(exporterConf), false, true, false},
		{"a newer exporter", program(exporter), false, true, false},
		{"a newer kubelet", program(kubelet), true, true, false},
		{"an argument of the kubelet", argument("kubelet"), true, true, false},
		{"an argument of the exporter", argument("windows_exporter"), false, true, false},
		{"the proxy", func(n *bundletest.Node) { n.Proxy["NO_PROXY"] = ".cluster.local" }, true, true, false},
		{"a trusted CA more", func(n *bundletest.Node) { n.CAs = []string{"first CA", "second CA", "third CA"} }, true, true, false},
		{"a trusted CA less", func(n *bundletest.Node) { n.CAs = []string{"first CA"} }, true, true, false},
		{"a route", func(n *bundletest.Node) { n.Routes = nil }, true, true, false},
		{"a firewall rule", func(n *bundletest.Node) {
			n.Firewall = []bundle.FirewallRule{{Name: "kubelet", Protocol: "TCP", Port: 10250, Impact: bundle.ImpactNone}}
		}, true, true, false},
		{"the host name", func(n *bundletest.Node) { n.HostName = "another" }, true, true, true},
		{"a feature", func(n *bundletest.Node) {
			n.Features = []bundle.Feature{{Name: "Containers", Impact: bundle.ImpactReboot}}
		}, false, true, true},
	}
}

// linkWorld is a world to which the change is published.
func linkWorld(t *testing.T, c linkChange) (*world, published.Desired) {
	t.Helper()
	w := newWorld(t)
	w.withExporter()
	w.bundle = w.bundle.Changed(c.change)
	w.upload()
	d := w.publish(bundle.ImpactReboot)
	w.repairAt, w.fullAt = w.sinceBoot()+time.Hour, w.sinceBoot()+time.Hour // the test is about a change and not drift
	w.host.ClearLog()
	return w, d
}

// upload copies what the host lacks, as the operator does over SSH before it writes the digest.
func (w *world) upload() {
	w.t.Helper()
	observed, err := w.engine().Observe(w.t.Context(), w.bundle.Manifest(w.t), w.archived(w.bundle, nil).Contents(), false)
	if err != nil {
		w.t.Fatal(err)
	}
	if observed.Impact == bundle.ImpactNone {
		return
	}
	var refused *applier.RefusedError
	if _, err := w.engine().Apply(w.t.Context(), w.bundle.Manifest(w.t), w.archived(w.bundle, observed.Missing), applier.Options{MaxImpact: bundle.ImpactNone}); !errors.As(err, &refused) {
		w.t.Fatal(err)
	}
}

// changedHost reports whether something but records of the engine was changed.
func (w *world) changedHost() bool {
	return slices.ContainsFunc(w.host.Log(), func(o simulation.Operation) bool {
		return !strings.Contains(strings.ToLower(o.Target), "programdata")
	})
}

// TestWhatCanCutTheLinkIsNotBegunWhileTheAPIServerIsAway: the layers could be fetched, and then the API server went away.
func TestWhatCanCutTheLinkIsNotBegunWhileTheAPIServerIsAway(t *testing.T) {
	for _, c := range linkChanges() {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, d := linkWorld(t, c)
				w.cluster.silent = errors.New("connection refused")
				got := w.turn()
				if c.cuts && (w.changedHost() || got.State != published.StateFailed || !strings.Contains(got.Message, "connection refused")) {
					t.Errorf("%s %s\n%v", got.State, got.Message, w.host.Log())
				}
				if !c.cuts && !w.changedHost() {
					t.Errorf("nothing was changed: %s %s", got.State, got.Message)
				}
				w.cluster.silent = nil
				w.clock.Pass(lastRetry)
				w.turn()
				if c.boots {
					w.boot()
					w.restart()
				}
				if got := w.turn(); got.State != published.StateApplied || got.Applied != d.Bundle {
					t.Errorf("it is back: %s %s", got.State, got.Message)
				}
			})
		})
	}
}

// TestABootThatWindowsDropsIsAskedForAgain: `shutdown /a` of an administrator ends it, and so does the end of a restart that others had scheduled.
func TestABootThatWindowsDropsIsAskedForAgain(t *testing.T) {
	for _, c := range linkChanges() {
		if !c.boots {
			continue
		}
		w, d := linkWorld(t, c)
		for range 3 {
			w.host.ClearLog()
			if got := w.turn(); got.State != published.StateRebootPending || w.bootsAsked() != 1 {
				t.Fatalf("%s: %s %s, %d boots asked for", c.name, got.State, got.Message, w.bootsAsked())
			}
			w.host.ClearLog()
			if w.turn(); w.bootsAsked() > 0 {
				t.Fatalf("%s: asked for at once", c.name)
			}
			w.clock.Pass(bootInterval)
		}
		w.boot()
		w.restart()
		if got := w.turn(); got.State != published.StateApplied || got.Applied != d.Bundle {
			t.Errorf("%s: %s %s", c.name, got.State, got.Message)
		}
	}
}

// TestOnlyWhatCanCutTheLinkIsRolledBackIfTheAPIServerGoesAway: it goes away with the change.
func TestOnlyWhatCanCutTheLinkIsRolledBackIfTheAPIServerGoesAway(t *testing.T) {
	for _, c := range linkChanges() {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, d := linkWorld(t, c)
				before := w.settled()
				away := errors.New("connection refused")
				w.cluster.ready = func() time.Time {
					if w.changedHost() {
						w.cluster.silent = away
						return time.Time{}
					}
					return w.fresh()
				}
				begun := w.clock.SinceBoot()
				got := w.turn()
				if c.boots {
					if got.State != published.StateRebootPending {
						t.Fatalf("%s %s", got.State, got.Message)
					}
					w.cluster.silent = away
					w.boot()
					w.restart()
					w.host.ClearLog()
					begun = 0
					got = w.turn()
				}
				took := w.clock.SinceBoot() - begun
				switch {
				case c.cuts:
					if got.State != published.StateRolledBack || !strings.Contains(got.Message, "API server") || took < w.Options.Confirm || took > w.Options.Confirm+time.Minute {
						t.Errorf("%s %s after %s", got.State, got.Message, took)
					}
					if diff := cmp.Diff(before, w.settled()); diff != "" && !c.boots { // the old name waits for another boot
						t.Errorf("not as it was (-want +got):\n%s", diff)
					}
				case got.State != published.StateApplied || got.Applied != d.Bundle:
					t.Errorf("%s %s after %s", got.State, got.Message, took)
				case c.asks != (took >= w.Options.Confirm):
					t.Errorf("after %s", took)
				}
			})
		})
	}
}

// settled is the host without the records of the engine and fields that change on their own.
func (w *world) settled() simulation.Snapshot {
	s := w.host.Snapshot()
	for path := range s.Files {
		if strings.Contains(strings.ToLower(path), "programdata") {
			delete(s.Files, path)
		}
	}
	s.Facts.BootTime = ""
	return s
}
