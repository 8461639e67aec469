package agent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/bundle/published"
	"wmco/internal/hostsim/bundletest"
)

// heard lets the log of the world's agent be read.
func (w *world) heard() *bytes.Buffer {
	var text bytes.Buffer
	w.Log = slog.New(slog.NewTextHandler(&text, nil))
	return &text
}

// drained publishes a change that drains, with its permission.
func (w *world) drained() published.Desired {
	w.bundle = w.bundle.Changed(func(n *bundletest.Node) {
		n.Files[kubeletConf] = "changed\n"
		n.Impacts = map[string]bundle.Impact{kubeletConf: bundle.ImpactDrain}
	})
	return w.publish(bundle.ImpactDrain)
}

// TestAKilledAgentResumesWhatWasPermitted kills the agent at every step of a change that drains. Another process resumes it before
// it knows the Node: the permission was for this bundle.
func TestAKilledAgentResumesWhatWasPermitted(t *testing.T) {
	for cut := 0; ; cut++ {
		w := newWorld(t)
		d := w.drained()
		w.host.CutAt(cut)
		w.setNode(w.cluster.node, w.changed)
		_ = w.runDueWork(t.Context())
		if !w.host.Cut() {
			if cut < 10 {
				t.Errorf("only %d steps", cut)
			}
			return
		}
		w.host.Revive()
		w.restart()
		log := w.heard()
		w.turn()
		for range 6 {
			w.clock.Pass(10 * time.Minute)
			w.turn()
		}
		if got := w.lastReport(); got.State != published.StateApplied || got.Applied != d.Bundle || w.file(kubeletConf) != "changed\n" {
			t.Fatalf("killed at step %d: %s %s, %q", cut, got.State, got.Message, w.file(kubeletConf))
		}
		if strings.Contains(log.String(), "roll") {
			t.Fatalf("killed at step %d: it was rolled back in between:\n%s", cut, log)
		}
	}
}

// TestAnInterruptedRunThatCostsMoreWaits: the host drifted after the agent was killed, and the rest costs more than was permitted.
func TestAnInterruptedRunThatCostsMoreWaits(t *testing.T) {
	synctest.Test(t, checkAnInterruptedRunThatCostsMoreWaits)
}

func checkAnInterruptedRunThatCostsMoreWaits(t *testing.T) {
	t.Helper()
	w := newWorld(t)
	w.bundle = w.bundle.Changed(func(n *bundletest.Node) {
		n.Files[kubeletConf], n.Impacts = "changed\n", map[string]bundle.Impact{`C:\k\containerd\containerd_conf.toml`: bundle.ImpactDrain}
	})
	w.publish(bundle.ImpactRestart)
	w.cutInConfirmation()
	w.host.Falsify(`C:\k\containerd\containerd_conf.toml`, "drifted\n")
	w.host.Discard(kubeletConf)
	w.host.ClearLog()
	w.restart()
	w.clock.Pass(7 * time.Hour)
	if got := w.turn(); got.State != published.StateNeedsPermission || got.Impact != bundle.ImpactDrain || w.starts("kubelet") != 0 {
		t.Fatalf("%s %s, %d starts", got.State, got.Message, w.starts("kubelet"))
	}
	w.publish(bundle.ImpactDrain)
	if got := w.turn(); got.State != published.StateApplied || w.file(kubeletConf) != "changed\n" {
		t.Errorf("%s %s", got.State, got.Message)
	}
}

// cutInConfirmation kills the agent while it waits for its Node.
func (w *world) cutInConfirmation() {
	w.t.Helper()
	ready := w.cluster.ready
	asked := 0
	w.cluster.ready = func() time.Time {
		if asked++; asked == 2 { // the first is before the change
			w.host.CutAt(0)
			_ = w.host.Write(w.t.Context(), `C:\x`, bundle.AccessUsers, strings.NewReader(""))
		}
		return longAgo
	}
	w.setNode(w.cluster.node, w.changed)
	ctx, kill := context.WithCancel(w.t.Context())
	defer kill()
	w.waits.at = func(time.Duration) {
		if w.host.Cut() {
			kill()
		}
	}
	_ = w.runDueWork(ctx)
	if !w.host.Cut() {
		w.t.Fatal("it never asked for its Node")
	}
	w.host.Revive()
	w.waits.at, w.cluster.ready = nil, ready
}

// TestAKilledAgentTakesUpItsConfirmation: nothing is restarted, rolled back or applied again, and the deadline is the first one.
func TestAKilledAgentTakesUpItsConfirmation(t *testing.T) {
	away := errors.New("connection refused")
	for _, tt := range []struct {
		name  string
		path  string // the file that changes
		down  time.Duration
		boot  bool
		ready func(*world) time.Time
		away  error
		// within is how long the confirmation takes after the restart, at most.
		want   published.State
		within time.Duration
	}{
		{"the node is Ready", kubeletConf, time.Minute, false, (*world).fresh, nil, published.StateApplied, 15 * time.Second},
		{"the node is Ready after a boot", kubeletConf, 10 * time.Minute, true, (*world).fresh, nil, published.StateApplied, 15 * time.Second},
		{"the node is Ready, the deadline has passed", kubeletConf, time.Hour, false, (*world).fresh, nil, published.StateApplied, 15 * time.Second},
		{"the node is not Ready", kubeletConf, 3 * time.Minute, false, func(*world) time.Time { return time.Time{} }, nil, published.StateRolledBack, 2*time.Minute + 30*time.Second},
		{"the kubelet is silent", kubeletConf, 3 * time.Minute, false, func(*world) time.Time { return longAgo }, nil, published.StateRolledBack, 2*time.Minute + 30*time.Second},
		{"the API server is away, and the change can be the reason", kubeletConf, time.Minute, false, nil, away, published.StateRolledBack, 4*time.Minute + 30*time.Second},
		{"the API server is away, and the change cannot be the reason", exporterConf, time.Minute, false, nil, away, published.StateApplied, 4*time.Minute + 30*time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.withExporter()
				before := w.file(tt.path)
				w.change(tt.path, "changed\n")
				d := w.publish(bundle.ImpactRestart)
				w.cutInConfirmation()
				w.clock.Pass(tt.down)
				if tt.boot {
					w.boot()
				}
				w.restart()
				log := w.heard()
				w.host.ClearLog()
				w.cluster.ready, w.cluster.away = func() time.Time { return tt.ready(w) }, tt.away
				begun := w.clock.SinceBoot()
				if err := w.runDueWork(t.Context()); err != nil { // before the watch has told anything
					t.Fatal(err)
				}
				if took := w.clock.SinceBoot() - begun; took > tt.within {
					t.Errorf("it took %s", took)
				}
				w.cluster.away, w.cluster.ready = nil, w.fresh
				for range 3 {
					w.turn()
					w.clock.Pass(10 * time.Minute)
				}
				got := w.lastReport()
				if got.State != tt.want || got.Desired != d.Bundle {
					t.Fatalf("%s %s\n%s", got.State, got.Message, log)
				}
				switch {
				case tt.want == published.StateRolledBack && (w.file(tt.path) != before || got.Message == ""):
					t.Errorf("%q, %q", w.file(tt.path), got.Message)
				case tt.want == published.StateApplied && (w.file(tt.path) != "changed\n" || w.starts("kubelet")+w.starts("windows_exporter") != 0):
					t.Errorf("%q, %d starts of the kubelet, %d of the exporter\n%s", w.file(tt.path), w.starts("kubelet"), w.starts("windows_exporter"), log)
				}
				events := 0
				for _, e := range w.cluster.events {
					if e.Reason == EventApplied && tt.want == published.StateApplied || e.Reason == EventRolledBack && tt.want == published.StateRolledBack {
						events++
					}
				}
				if tt.away == nil && events != 1 {
					t.Errorf("events %+v", w.cluster.events)
				}
			})
		})
	}
}

// TestAnotherCallersConfirmationIsNotTheAgents: who applied over SSH confirms over SSH.
func TestAnotherCallersConfirmationIsNotTheAgents(t *testing.T) {
	w := newWorld(t)
	n := w.bundle.Changed(func(n *bundletest.Node) { n.Files[kubeletConf] = "over SSH\n" })
	observed, err := w.engine().Observe(t.Context(), n.Manifest(w.t), w.archived(n, nil).Contents(), false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	_, err = w.engine().Apply(ctx, n.Manifest(w.t), w.archived(n, observed.Missing), applier.Options{ConfirmWithin: time.Hour, Confirm: func(ctx context.Context) error {
		kill()
		<-ctx.Done()
		return ctx.Err()
	}})
	var partial *applier.PartialError
	if !errors.As(err, &partial) {
		t.Fatal(err)
	}
	w.restart()
	w.turn()
	if o, err := w.engine().Repair(t.Context(), applier.Options{}); err != nil || o.Result != protocol.ResultPartial || w.file(kubeletConf) != "over SSH\n" {
		t.Errorf("%v %+v %q", err, o, w.file(kubeletConf))
	}
}

func (w *world) archived(n bundletest.Node, missing []protocol.Missing) *archive.Reader {
	w.t.Helper()
	in, err := archive.NewReader(bytes.NewReader(n.Archive(w.t, missing)))
	if err != nil {
		w.t.Fatal(err)
	}
	return in
}
