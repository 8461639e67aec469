package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/rollout"
	simcluster "wmco/internal/test/simnode/cluster"
	"wmco/internal/test/sshtest"
	"wmco/internal/test/testenv/controlplane"
)

// What a change of a mirror set may cost at most.
const (
	// writesPerNode are the operator's that concern one node: a canary is also confirmed. Its reports are two more (TestWhatChangesCost counts those of node agents).
	writesPerNode = 2
	// writesBesides are the operator's writes that concern no node: the layer, the access to it, the same of the layer before, events
	// and the status, whose counts are written once in a statusPause besides.
	writesBesides = 20
	// operatorMemory is in bytes, for up to a thousand nodes; memoryPerNode are more of them for each further node. Memory and time depend on the computer:
	// they are judged where scaleVariable is set.
	operatorMemory = 250 << 20
	memoryPerNode  = 80 << 10
	// operatorRest is how much of one processor the operator uses when nothing changes.
	operatorRest = 0.1
)

// scaleVariable is the number of nodes of TestScale.
const scaleVariable = "WMCO_SCALE_NODES"

// TestScale changes a mirror set for nodes without node agents (reporters): 20, or as many as the variable has. The time of the change is printed and
// not checked.
func TestScale(t *testing.T) {
	n, text := 20, os.Getenv(scaleVariable)
	if text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	f := newScaled(t, n)
	cost := f.change()
	t.Log(cost)
	cost.checkWrites(t)
	if text != "" {
		cost.checkComputer(t)
	}
}

// scaled is a cluster with many nodes, and the operator in a process of its own.
type scaled struct {
	client.Client
	t        *testing.T
	n        int
	seen     *reports
	programs sshtest.Shared
	operator *operatorProcess
	changes  int
}

// newScaled returns when all nodes have their published bundles.
func newScaled(t *testing.T, n int) *scaled {
	t.Helper()
	f := newScaledCluster(t, n, "")
	f.start(operatorFlags{}, func(r *reporters) func(*metav1.PartialObjectMetadata) { return r.see })
	f.set("{}")
	return f
}

// newScaledCluster makes the cluster of which the nodes have a payload. No operator runs.
func newScaledCluster(t *testing.T, n int, payload bundle.Digest) *scaled {
	t.Helper()
	log.SetLogger(logr.Discard())
	cluster.LoadExample(t, "..", "deploy/rbac", "deploy/admission", "deploy/crd")
	f := &scaled{Client: cluster.Client(t), t: t, n: n}
	f.programs.Build(t)
	t.Cleanup(f.programs.Remove)
	t.Cleanup(func() {
		_ = f.DeleteAllOf(context.Background(), &corev1.Secret{}, client.InNamespace(gather.OperatorNamespace), client.HasLabels{published.LayerLabel})
	})
	f.create(mirrorSet("scale", "quay.io"))
	// The nodes get their first bundle at once. What is measured has the defaults.
	f.create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "windows-machine-config"},
		Data:       map[string]string{"config.yaml": `rollout: {canaries: 0, maxUnavailable: 100%, maxParallel: 10000}`},
	})
	f.createNodes(payload)
	f.must(simcluster.RecordNodes(t.Context(), cluster.Config(t)))
	return f
}

// create creates an object until the end of the test.
func (f *scaled) create(o client.Object) {
	f.t.Helper()
	f.must(f.Create(f.t.Context(), o))
	f.t.Cleanup(func() { _ = f.Delete(context.Background(), o) })
}

// start starts the operator, and what answers for the nodes, and returns when all have their first bundle.
func (f *scaled) start(flags operatorFlags, answer func(*reporters) func(*metav1.PartialObjectMetadata)) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var reporting sync.WaitGroup
	f.seen = watchReports(ctx, f.t, f.n, answer(startReporters(ctx, f.t, f.facts(), &reporting)))
	f.operator = startOperatorProcess(f.t, &f.programs, flags)
	f.t.Cleanup(func() {
		f.operator.stop()
		cancel()
		reporting.Wait()
	})
	f.seen.await("the first bundle of all nodes", func(s nodeState) bool { return s.applied() })
}

// set changes the settings of the rollout, and returns when the operator has nothing to do any more.
func (f *scaled) set(rollout string) {
	f.t.Helper()
	f.must(f.Patch(f.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "windows-machine-config"}},
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"config.yaml":%q}}`, "rollout: "+rollout))))
	f.rest()
}

func (f *scaled) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// createNodes makes Nodes that are Ready, with their Machines, and that have the executables of a payload.
func (f *scaled) createNodes(payload bundle.Digest) {
	f.t.Helper()
	example := f.example()
	for _, key := range []string{published.VersionAnnotation, published.DesiredVersionAnnotation} {
		example.Template.Annotations[key] = builtVersion // none of them is upgraded
	}
	if payload != "" {
		example.Template.Annotations[published.PayloadAnnotation] = string(payload)
	}
	c := machineClient(f.t)
	parallel(f.t, 8, f.n, func(i int) error {
		node, _ := example.Node(i)
		return simcluster.AddJoined(f.t.Context(), c, node)
	})
	for i := range f.n {
		f.t.Cleanup(func() {
			_ = f.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: simcluster.NodeName(i)}})
		})
	}
	f.t.Cleanup(func() {
		_ = c.DeleteAllOf(context.Background(), &machinev1beta1.Machine{}, client.InNamespace("openshift-machine-api"), client.MatchingLabels{"machine.openshift.io/os-id": "Windows"})
	})
}

func (f *scaled) example() simcluster.Example {
	f.t.Helper()
	example, err := simcluster.ReadExample("..")
	f.must(err)
	return example
}

// facts are those of the hosts, by the names of their Nodes.
func (f *scaled) facts() map[string]bundle.Facts {
	f.t.Helper()
	example, of := f.example(), map[string]bundle.Facts{}
	for i := range f.n {
		node, facts := example.Node(i)
		of[node.Name] = facts
	}
	return of
}

// machineClient returns a client that knows Machines.
func machineClient(t testing.TB) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), machinev1beta1.Install(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cluster.Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// rest waits until the operator has written nothing for some seconds, in which it has compared all nodes.
func (f *scaled) rest() {
	f.t.Helper()
	silence := 4*time.Second + rollout.ComparisonPause(f.n)
	written, since := -1, time.Now()
	for time.Since(since) < silence {
		if now := len(f.writes(0)); now != written {
			written, since = now, time.Now()
		}
		select {
		case <-f.t.Context().Done():
			f.t.Fatal("the operator did not come to rest")
		case <-time.After(silence / 4):
		}
	}
}

// requests returns the audit log.
func (f *scaled) requests() []controlplane.Request {
	f.t.Helper()
	all, err := cluster.ControlPlane(f.t).Requests()
	f.must(err)
	return all
}

// writes returns the writes of the operator and the reports since a request, without those of Leases.
func (f *scaled) writes(since int) []controlplane.Request {
	f.t.Helper()
	return slices.DeleteFunc(f.requests()[since:], func(q controlplane.Request) bool {
		return !q.IsWrite() || q.Resource == "leases" || q.User != operatorUser && q.Agent != "wmco-node"
	})
}

// costs are what a change has cost.
type costs struct {
	nodes int
	// took is from the change to the last node's report.
	took time.Duration
	// reads are those of the operator, writes its writes by verb and resource, each those that concern a node, by its name, with their status.
	reads  int
	writes map[string]int
	each   map[string][]string
	// reports are the nodes whose reports were written.
	reports map[string]bool
	// conflicts are writes that were refused because the object had changed, and are part of the others.
	conflicts int
	// logins are attempts to reach a host over SSH, since the start of the operator.
	logins int64
	// cpu is the time of the operator's process until it rested, rest what it used of one processor then, peak the most memory that it
	// had, in bytes, and program what of it are pages of the program's file at the end.
	cpu           time.Duration
	rest          float64
	peak, program uint64
	// load is the load average of the computer over the last minute.
	load string
}

// change changes the mirror set, and returns when the operator has nothing to do any more.
func (f *scaled) change() *costs {
	f.t.Helper()
	f.changes++
	since, cpu := len(f.requests()), f.operator.cpu()
	before := f.seen.bundles()
	begun := time.Now()
	f.must(f.Patch(f.t.Context(), mirrorSet("scale", ""), client.RawPatch(types.MergePatchType, fmt.Appendf(nil,
		`{"spec":{"imageDigestMirrors":[{"source":"quay.io","mirrors":["mirror-%d.example.com"]}]}}`, f.changes))))
	last := f.seen.await("reports of another bundle by all nodes", func(s nodeState) bool { return s.applied() && s.desired != before[s.name] })
	c := &costs{nodes: f.n, took: last.Sub(begun), writes: map[string]int{}, each: map[string][]string{}, reports: map[string]bool{}, load: loadAverage()}
	f.rest()
	c.cpu = f.operator.cpu() - cpu
	for _, q := range f.requests()[since:] {
		if q.User == operatorUser && (q.Verb == "get" || q.Verb == "list") && q.Resource != "leases" {
			c.reads++
		}
	}
	for _, q := range f.writes(since) {
		c.count(q)
	}
	c.rest = f.operator.atRest(5 * time.Second)
	c.logins, c.peak, c.program = f.operator.dialed.Load(), f.operator.memory("VmHWM"), f.operator.memory("RssFile")
	return c
}

// count counts a write.
func (c *costs) count(q controlplane.Request) {
	if q.Status == http.StatusConflict {
		c.conflicts++
	}
	if q.User != operatorUser {
		c.reports[strings.TrimPrefix(q.User, "system:node:")] = true
		return
	}
	c.writes[q.Verb+" "+q.Resource]++
	if strings.HasPrefix(q.Resource, "nodes") {
		c.each[q.Name] = append(c.each[q.Name], fmt.Sprintf("%s %s %d", q.Verb, q.Resource, q.Status))
	}
}

func (c *costs) String() string {
	return fmt.Sprintf("%d nodes: %.1f s from the change to the last report; writes by the operator %v, %d conflicts; %d reads by the operator; %d SSH connections; "+
		"operator: %.1f s of CPU, %.1f%% of one CPU at rest, at most %d MiB of memory, %d MiB of which are pages of the program; load %s",
		c.nodes, c.took.Seconds(), c.writes, c.conflicts, c.reads, c.logins, c.cpu.Seconds(), 100*c.rest, c.peak>>20, c.program>>20, c.load)
}

func (c *costs) checkWrites(t testing.TB) {
	t.Helper()
	if len(c.each) != c.nodes || len(c.reports) != c.nodes {
		t.Errorf("of %d nodes %d were written, and %d have reported", c.nodes, len(c.each), len(c.reports))
	}
	besides := 0
	for _, n := range c.writes {
		besides += n
	}
	for name, writes := range c.each {
		besides -= len(writes)
		if len(writes) > writesPerNode {
			t.Errorf("%d writes for %s: %q", len(writes), name, writes)
		}
	}
	if besides > writesBesides+int(c.took/rollout.StatusPause) {
		t.Errorf("%d writes that concern no node: %v", besides, c.writes)
	}
	if c.logins > 0 {
		t.Errorf("%d SSH connections", c.logins)
	}
}

func (c *costs) checkComputer(t testing.TB) {
	t.Helper()
	if c.peak > uint64(operatorMemory+max(c.nodes-1000, 0)*memoryPerNode) {
		t.Errorf("the operator has used %d MiB", c.peak>>20)
	}
	if c.rest > operatorRest {
		t.Errorf("the operator uses %.1f%% of one CPU at rest", 100*c.rest)
	}
}
