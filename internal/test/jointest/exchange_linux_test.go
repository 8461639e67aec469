package jointest_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/bundle/reason"
	"wmco/controller/gather"
	"wmco/controller/status"
	"wmco/internal/test/seed"
	"wmco/internal/test/testenv/controlplane"
	"wmco/payload"
)

// nextVariable is a folder with the API server of a newer minor version: the one of the control plane is exchanged for it. Without it, the control
// plane's own one emulates older minor versions first.
const nextVariable = "WMCO_TESTENV_NEXT"

// stage is an API server, its minor version of Kubernetes, and a version of a cluster that has it.
type stage struct {
	controlplane.Version
	minor, cluster string
}

// stages are the API servers that follow each other. Without a newer program there are as many as exchanges.
func stages(t *testing.T, exchanges int) []stage {
	t.Helper()
	own := minorOfProgram(t, filepath.Dir(server.ControlPlane(t).APIServerProgram()))
	newer := os.Getenv(nextVariable)
	first, last := own-exchanges, own
	if newer != "" {
		first, last = own, minorOfProgram(t, newer)
	} else if oldest, _ := payload.MinorNumber(payload.Releases()[0].Minor); first < oldest {
		t.Skipf("Kubernetes 1.%d emulates no older version with a kubelet in the payload: set %s", own, nextVariable)
	}
	var list []stage
	for n := first; n <= last; n++ {
		s := stage{minor: fmt.Sprintf("1.%d", n)}
		if newer == "" || n > own {
			s.Programs = newer
			if n < last {
				s.Emulated = s.minor
			}
		}
		r, ok := payload.ReleaseOf(s.minor)
		if !ok {
			t.Fatalf("the payload has no kubelet of Kubernetes %s", s.minor)
		}
		s.cluster = r.Clusters()[0] + ".9"
		list = append(list, s)
	}
	return list
}

// minorOfProgram returns 36 for the API server v1.36.3 in a folder.
func minorOfProgram(t *testing.T, folder string) int {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(folder, controlplane.APIServer), "--version").Output()
	must(t, err)
	var minor, patch int
	_, err = fmt.Sscanf(string(out), "Kubernetes v1.%d.%d", &minor, &patch)
	must(t, err)
	return minor
}

// exchange is a cluster with nodes whose API server is exchanged for newer ones.
type exchange struct {
	*world
	names    []string
	kills    int
	random   *rand.Rand
	operator *operator
	observer *skewObserver
}

// TestTheAPIServerIsExchangedForNewerMinorVersions under a running operator. Kubelets follow by rollout, each node drained, while operators are
// killed. At every moment no kubelet is newer than the API server, or more than three minor versions older. Where there are two exchanges or more,
// the worker pool is paused during the first one, and nodes skip that version (EUS to EUS).
func TestTheAPIServerIsExchangedForNewerMinorVersions(t *testing.T) {
	exchanges := number(t, "WMCO_EXCHANGES", 0)
	if exchanges == 0 && os.Getenv(nextVariable) == "" {
		t.Skip("API servers are exchanged with WMCO_EXCHANGES=1 to 3")
	}
	begun := time.Now()
	w := newWorld(t)
	list := stages(t, exchanges)
	if os.Getenv(nextVariable) == "" {
		t.Cleanup(func() {
			must(t, server.ControlPlane(t).ExchangeAPIServer(controlplane.Version{}))
			must(t, server.ControlPlane(t).RestartControllers())
		})
	}
	must(t, server.ControlPlane(t).ExchangeAPIServer(list[0].Version))
	w.history(list[0].cluster)
	w.pool(false, list[0].cluster)
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "windows-machine-config"}, Data: map[string]string{"config.yaml": `{rollout: {settle: 0s, maxUnavailable: 2}}`}})
	x := &exchange{world: w, kills: number(t, "WMCO_EXCHANGE_KILLS", 2), observer: w.observeSkew()}
	x.random = seed.New(t)
	x.names = w.many(number(t, "WMCO_EXCHANGE_NODES", 6))
	x.operator = w.process(w.settings())
	w.allJoin(x.names)
	w.app("web", 2, x.names[1])
	eventually(t, "pods on a node", func() bool { return w.running("web", x.names[1]) == 2 })
	t.Logf("%d nodes after %.0f s", len(x.names), time.Since(begun).Seconds())

	paused := false
	had := []string{payload.For(payload.Kubelet, list[0].minor).Version}
	for i, to := range list[1:] {
		from := list[i]
		if !paused { // else nodes keep the version of the pool, which no API server refuses
			x.refuses(from, to)
		}
		x.serve(from, to)
		if paused = i == 0 && len(list) > 2; paused {
			w.pool(true, from.cluster)
			w.history(to.cluster, from.cluster)
			x.waits()
			continue
		}
		begun := time.Now()
		drained := w.drained(x.names[1], "web")
		w.history(to.cluster, from.cluster)
		w.pool(false, to.cluster)
		kills := x.follow(had[len(had)-1], to)
		drained()
		had = append(had, payload.For(payload.Kubelet, to.minor).Version)
		t.Logf("%d nodes have the kubelet of Kubernetes %s after %.0f s, %d operators were killed", len(x.names), to.minor, time.Since(begun).Seconds(), kills)
	}
	x.observer.check(x.names, had)
}

// published returns the digests of published bundles, by Node.
func (x *exchange) published() map[string]bundle.Digest {
	all := map[string]bundle.Digest{}
	for _, name := range x.names {
		all[name] = x.desiredOf(name).Bundle
	}
	return all
}

// refuses: the history of ClusterVersion names a version that the API server does not have yet. That is reported, and nothing is published.
func (x *exchange) refuses(from, to stage) {
	x.t.Helper()
	before := x.published()
	x.history(to.cluster, from.cluster)
	eventually(x.t, "a condition that the kubelet is too new", func() bool {
		c := x.condition(status.InputsAccepted)
		return c.Status == metav1.ConditionFalse && c.Reason == reason.KubeletTooNew && strings.Contains(c.Message, "is newer than one of its API servers, v"+from.minor+".") && strings.Contains(c.Message, "fix: ")
	})
	x.unchanged("a kubelet that is refused", before)
	x.history("to "+to.cluster, from.cluster)
	eventually(x.t, "a condition that nothing is refused", func() bool { return x.condition(status.InputsAccepted).Status == metav1.ConditionTrue })
}

// serve exchanges the API server. The update of the cluster has not ended: nodes keep what they have.
func (x *exchange) serve(from, to stage) {
	x.t.Helper()
	before := x.published()
	must(x.t, server.ControlPlane(x.t).ExchangeAPIServer(to.Version))
	if minor, _ := minorOfServer(x.t); minor != to.minor {
		x.t.Fatalf("the API server has %s, want %s after %s", minor, to.minor, from.minor)
	}
	x.observer.exchanged()
	x.allJoin(x.names) // Ready again
	x.unchanged("an update of the cluster that has not ended", before)
}

// waits: while the worker pool is paused, nodes follow all but the version.
func (x *exchange) waits() {
	x.t.Helper()
	x.create(mirrorSet("paused"))
	for _, name := range x.names {
		eventually(x.t, "a mirror on "+name, func() bool {
			return strings.Contains(x.machines[name].Text(`C:\k\containerd\registries\paused.example.com\hosts.toml`), "mirror.example.com:5000")
		})
	}
	x.unchanged("a paused worker pool", nil)
}

// unchanged checks that nodes have their published bundle, are not cordoned, and keep it.
func (x *exchange) unchanged(what string, before map[string]bundle.Digest) {
	x.t.Helper()
	if diff := cmp.Diff(before, x.published()); before != nil && diff != "" {
		x.t.Errorf("%s: published (-before +after):\n%s", what, diff)
	}
	for _, name := range x.names {
		if n := x.node(name); n.Spec.Unschedulable || n.Annotations[published.CordonAnnotation] != "" {
			x.t.Errorf("%s: %s is cordoned", what, name)
		}
	}
}

// follow waits until all nodes have the kubelet of a version. Operators are killed while nodes are in their turn. It returns how many.
func (x *exchange) follow(before string, to stage) (killed int) {
	x.t.Helper()
	kubelet := payload.For(payload.Kubelet, to.minor)
	has := func(name string) bool {
		return x.node(name).Status.NodeInfo.KubeletVersion == kubelet.Version && strings.Contains(x.machines[name].Text(`C:\k\kubelet.exe`), kubelet.Name)
	}
	all := func() bool { return count(x.names, has) == len(x.names) }
	inTurn := func(name string) bool { return x.node(name).Annotations[published.CordonAnnotation] != "" }
	if payload.RefusesUpdate(to.cluster, before) {
		eventually(x.t, "a condition about the cluster's next update", func() bool {
			c := x.condition(status.KubeletsUpgradeable)
			return c.Status == metav1.ConditionFalse && strings.Contains(c.Message, before)
		})
	}
	for ; killed < x.kills && !all(); killed++ {
		eventually(x.t, "a node in its turn", func() bool { return count(x.names, inTurn) > 0 || all() })
		time.Sleep(time.Duration(x.random.IntN(2000)) * time.Millisecond) // when it is killed is what the test varies
		x.operator.kill()
		x.t.Logf("kill %d: %d nodes in their turn, %d of %d have kubelet %s", killed+1, count(x.names, inTurn), count(x.names, has), len(x.names), kubelet.Version)
		x.operator = x.process(x.settings())
	}
	for done := count(x.names, has); done < len(x.names); done = count(x.names, has) {
		eventually(x.t, "another node with kubelet "+kubelet.Version, func() bool { return count(x.names, has) > done })
	}
	x.allJoin(x.names)
	for _, name := range x.names {
		eventually(x.t, "the end of the turn of "+name, func() bool { return !inTurn(name) && x.desiredOf(name).MaxImpact == bundle.ImpactRestart })
	}
	eventually(x.t, "pods again", func() bool { return x.running("web", x.names[1]) == 2 })
	eventually(x.t, "a condition that the cluster can be updated", func() bool { return x.condition(status.KubeletsUpgradeable).Status == metav1.ConditionTrue })
	return killed
}

// check checks what was observed: nothing outside of the skew, and each node had these kubelets and no others.
func (o *skewObserver) check(names, kubelets []string) {
	o.world.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, text := range o.faults {
		o.world.t.Error(text)
	}
	want := map[string][]string{}
	for _, name := range names {
		want[name] = kubelets
	}
	got := maps.Clone(o.kubelets)
	maps.DeleteFunc(got, func(name string, _ []string) bool { return !slices.Contains(names, name) })
	if diff := cmp.Diff(want, got); diff != "" {
		o.world.t.Errorf("kubelets of nodes (-want +got):\n%s", diff)
	}
	o.world.t.Logf("%d events of Nodes were observed", o.events)
}
