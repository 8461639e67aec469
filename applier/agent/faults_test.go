package agent

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/bundle/published"
	"wmco/controller/layers"
	"wmco/internal/test/publishtest"
	"wmco/internal/test/testenv"
)

// quick is the system's clock, on which time can be let pass.
type quick struct {
	realClock
	passed atomic.Int64
}

func (q *quick) pass(d time.Duration) { q.passed.Add(int64(d)) }

func (q *quick) SinceBoot() time.Duration {
	return q.realClock.SinceBoot() + time.Duration(q.passed.Load())
}

func (q *quick) After(d time.Duration) <-chan time.Time {
	end, fired := q.SinceBoot()+d, make(chan time.Time, 1)
	go func() {
		for q.SinceBoot() < end {
			time.Sleep(5 * time.Millisecond)
		}
		fired <- q.Now()
	}()
	return fired
}

// running is an agent that runs against the real API server.
type running struct {
	*world
	*realPlayground
	time *quick
	log  logged
	stop func()
}

// run starts an agent on a host that has the first bundle, which is published, and a kubelet that reports all the time.
func run(t *testing.T) *running {
	t.Helper()
	r := &running{world: newWorld(t), realPlayground: newRealPlayground(t), time: &quick{realClock: newRealClock()}}
	r.realPlayground.kubelet(t, true, time.Now())
	r.start(t)
	r.publishes(t)
	r.reports(t, func(got published.Report) bool { return got.State == published.StateApplied })
	return r
}

// start starts another process of the agent.
func (r *running) start(t *testing.T) {
	t.Helper()
	e := r.engine()
	e.Clock, e.Settle = r.time, time.Millisecond
	a := &Agent{Engine: e, Cluster: r.APIServer, Log: slog.New(slog.NewTextHandler(&r.log, nil)), Options: Options{Interval: 5 * time.Minute, Full: time.Hour}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	r.stop = func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
}

// publishes publishes the bundle as it is now.
func (r *running) publishes(t *testing.T) layers.Wanted {
	t.Helper()
	want := wanted(t, r.world)
	if err := publishtest.Publish(t.Context(), r.publisher, want); err != nil {
		t.Fatal(err)
	}
	return want
}

// reports waits for a report.
func (r *running) reports(t *testing.T, which func(published.Report) bool) published.Report {
	t.Helper()
	var got published.Report
	var text string
	err := testenv.Eventually(t.Context(), "the report", func() bool {
		var err error
		text = r.node(t).Annotations[published.ReportAnnotation]
		got, err = published.DecodeReport(text)
		return err == nil && which(got)
	})
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, text, r.log.String())
	}
	return got
}

// TestAPublishedLayerOnTheAPIServerThatIsDamaged damages a published layer, and then lets the publisher check it, as it does for every node that
// reports a failure. TestPublishedLayersThatAreDamaged has the kinds of damage.
func TestAPublishedLayerOnTheAPIServerThatIsDamaged(t *testing.T) {
	r := run(t)
	r.kubeletReports(t)
	before, boot := r.world.settled(), r.node(t).ResourceVersion
	r.stop()
	r.change(kubeletConf, "changed\n")
	want := r.publishes(t)
	var secret corev1.Secret
	if err := r.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: want.Cluster.Names()[0]}, &secret); err != nil {
		t.Fatal(err)
	}
	if err := r.admin.Delete(t.Context(), secret.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	damaged := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name, Labels: secret.Labels}, Type: secret.Type, Immutable: secret.Immutable, Data: secret.Data}
	damaged.Data[published.SecretKey][len(damaged.Data[published.SecretKey])/2] ^= 1
	if err := r.admin.Create(t.Context(), damaged); err != nil {
		t.Fatal(err)
	}
	r.start(t)
	got := r.reports(t, func(got published.Report) bool { return got.State == published.StateFailed })
	if got.Desired != want.Bundle || !strings.Contains(got.Message, "opening layer") {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(before, r.world.settled()); diff != "" {
		t.Errorf("the host changed:\n%s", diff)
	}
	if !r.realPlayground.said(t, EventFailed) {
		t.Error("there is no event")
	}
	r.publishes(t) // which checks what the node cannot use
	r.time.pass(lastRetry)
	r.reports(t, func(got published.Report) bool {
		return got.State == published.StateApplied && got.Applied == want.Bundle
	})
	if r.file(kubeletConf) != "changed\n" || boot == r.node(t).ResourceVersion {
		t.Errorf("%q", r.file(kubeletConf))
	}
	r.stop()
}

// logged is a log that is read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// kubeletReports renews the Lease until the end of the test.
func (r *running) kubeletReports(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			renew(ctx, r.admin)
			time.Sleep(100 * time.Millisecond)
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
}

// newerLayer is a layer of a newer program, packed.
func newerLayer(t *testing.T) published.Packed {
	t.Helper()
	index := []byte(`{"schema":99,"kind":"cluster","later":true}`)
	var packed bytes.Buffer
	zip := archive.Encode(&packed)
	out := tar.NewWriter(zip)
	if err := out.WriteHeader(&tar.Header{Name: "layer.json", Size: int64(len(index)), Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Write(index); err != nil {
		t.Fatal(err)
	}
	for _, c := range []io.Closer{out, zip} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	p := published.Packed{Layer: published.Layer{Digest: bundle.Of(index), Parts: 1}}
	p.Secrets = []published.Part{{Name: p.Names()[0], Data: packed.Bytes()}}
	return p
}

// TestWhatANewerProgramPublishesIsRefused: this program reports that it is too old, changes nothing, and follows state that it can read.
func TestWhatANewerProgramPublishesIsRefused(t *testing.T) {
	r := run(t)
	before := r.world.settled()
	newer := newerLayer(t)
	own := wanted(t, r.world)
	whole, err := bundle.DigestLayers(newer.Digest, own.Own.Digest)
	if err != nil {
		t.Fatal(err)
	}
	for name, publishes := range map[string]func(){
		"a layer": func() {
			if err := publishtest.Publish(t.Context(), r.publisher, layers.Wanted{Node: nodeName, Bundle: whole, Cluster: &newer, Own: own.Own}); err != nil {
				t.Fatal(err)
			}
		},
		"the annotation": func() { r.desire(t, `{"schema":99}`) },
	} {
		publishes()
		got := r.reports(t, func(got published.Report) bool { return got.State == published.StateFailed })
		if !strings.Contains(got.Message, "newer") {
			t.Errorf("%s: %s", name, got.Message)
		}
		if diff := cmp.Diff(before, r.world.settled()); diff != "" {
			t.Errorf("%s: the host changed:\n%s", name, diff)
		}
		r.change(mirrors, "after "+name)
		want := r.publishes(t)
		r.reports(t, func(got published.Report) bool {
			return got.State == published.StateApplied && got.Applied == want.Bundle
		})
		before = r.world.settled()
	}
	r.stop()
}

// TestADesiredBundleThatFlaps publishes two bundles in turn: the host always has one of them, and at last the last one.
func TestADesiredBundleThatFlaps(t *testing.T) {
	r := run(t)
	texts := map[string]bool{r.file(mirrors): true}
	var want layers.Wanted
	for i := range 20 {
		text := fmt.Sprintf("server = \"https://mirror-%d\"\n", i%2)
		texts[text] = true
		r.change(mirrors, text)
		want = r.publishes(t)
		if have := r.file(mirrors); !texts[have] {
			t.Errorf("the host has %q", have)
		}
	}
	r.reports(t, func(got published.Report) bool {
		return got.State == published.StateApplied && got.Applied == want.Bundle
	})
	if n := r.starts("kubelet"); n != 1 || r.file(mirrors) != "server = \"https://mirror-1\"\n" {
		t.Errorf("%d starts, %q", n, r.file(mirrors))
	}
	r.stop()
}

// TestTheAPIServerIsStoppedAndStarted stops the real one: drift is repaired during that, and a bundle that was published before the agent could
// see it is applied afterwards.
func TestTheAPIServerIsStoppedAndStarted(t *testing.T) {
	r := run(t)
	plane := server.ControlPlane(t)
	right := r.file(mirrors)
	for i := range 2 {
		if err := plane.StopAPIServer(); err != nil {
			t.Fatal(err)
		}
		r.host.Falsify(mirrors, "drifted\n")
		r.time.pass(2 * time.Hour) // every file is read, and a heartbeat is due
		if err := testenv.Eventually(t.Context(), "the repair", func() bool { return r.file(mirrors) == right }); err != nil {
			t.Fatal(err)
		}
		if err := plane.StartAPIServer(); err != nil {
			t.Fatal(err)
		}
		right = fmt.Sprintf("server = \"https://mirror-%d\"\n", i)
		r.change(mirrors, right)
		var want layers.Wanted
		if err := testenv.Eventually(t.Context(), "the API server", func() bool {
			want = wanted(t, r.world)
			return publishtest.Publish(t.Context(), r.publisher, want) == nil
		}); err != nil {
			t.Fatal(err)
		}
		got := r.reports(t, func(got published.Report) bool {
			return got.State == published.StateApplied && got.Applied == want.Bundle
		})
		if got.Repaired != i+1 || r.file(mirrors) != right {
			t.Errorf("%d repaired, %q", got.Repaired, r.file(mirrors))
		}
	}
	r.stop()
}

// TestAFullDisk: failed writes are reported, nothing is half applied, and it is applied when there is room.
func TestAFullDisk(t *testing.T) {
	r := run(t)
	r.kubeletReports(t)
	before := r.world.settled()
	r.stop()
	r.leaveRoom(1)
	r.start(t)
	r.change(kubeletConf, "changed\n")
	want := r.publishes(t)
	got := r.reports(t, func(got published.Report) bool { return got.State == published.StateFailed })
	if !got.WaitsForRoom() || !strings.Contains(got.Message, "waits for room on drive C:") {
		t.Errorf("%s", got.Message)
	}
	if diff := cmp.Diff(before, r.world.settled()); diff != "" {
		t.Errorf("the host changed:\n%s", diff)
	}
	r.stop()
	r.leaveRoom(0)
	r.start(t)
	r.reports(t, func(got published.Report) bool {
		return got.State == published.StateApplied && got.Applied == want.Bundle
	})
	r.stop()
}

// TestANodeMayReadItsLayersAlone: the errors for a Secret that is not there and for one that is not for this node are one.
func TestANodeMayReadItsLayersAlone(t *testing.T) {
	r := newRealPlayground(t)
	grant(t, r.admin, "not-there")
	for _, name := range []string{"not-there", "cloud-private-key"} {
		want := map[string]string{"not-there": "does not exist", "cloud-private-key": "may not read"}[name]
		err := testenv.Eventually(t.Context(), name, func() bool {
			_, err := r.Part(t.Context(), namespace, name)
			return err != nil && strings.Contains(err.Error(), want)
		})
		if err != nil {
			_, last := r.Part(t.Context(), namespace, name)
			t.Errorf("%v: %v", err, last)
		}
	}
}
