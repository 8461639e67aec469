package controller

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/controller/node"
	"wmco/internal/test/payloadtest"
	"wmco/internal/test/registrytest"
	"wmco/internal/test/registrytest/distribution"
	"wmco/payload"
	"wmco/payload/store"
)

// Variables of TestScaleFetch: the number of nodes, which get executables of the size of a release then, and the value of rollout.fetchRate.
const (
	scaleFetchVariable = "WMCO_SCALE_FETCH"
	scaleRateVariable  = "WMCO_SCALE_FETCH_RATE"
)

// fetchMemory is in bytes, for up to a thousand nodes: what the Deployment requests.
const fetchMemory = 300 << 20

// fetchRun is what TestScaleFetch runs.
type fetchRun struct {
	nodes int
	// divisor makes the executables smaller, atOnce and rate are settings of the rollout.
	divisor, atOnce int
	rate            string
}

func newFetchRun(t *testing.T) fetchRun {
	t.Helper()
	text := os.Getenv(scaleFetchVariable)
	if text == "" {
		return fetchRun{nodes: 4, divisor: 40, atOnce: 4, rate: "2Mi"}
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	rate := os.Getenv(scaleRateVariable)
	if rate == "" {
		rate = "0"
	}
	return fetchRun{nodes: n, divisor: 1, atOnce: 20, rate: rate}
}

// TestScaleFetch exchanges the operator for one with other executables, which all nodes fetch from a mirror while the place before it answers that it has
// no such image, and then nothing. Times are printed and not checked.
func TestScaleFetch(t *testing.T) {
	distribution.NeedRegistry(t)
	run := newFetchRun(t)
	golden := filepath.Join("..", "golden", "payload")
	f := newScaledCluster(t, run.nodes, payloadDigest(t, golden))
	first, mirror, roots := startMirrors(t)
	var nodes *fetchingNodes
	f.start(operatorFlags{payload: golden}, func(r *reporters) func(*metav1.PartialObjectMetadata) {
		nodes = f.startFetching(r, roots)
		return nodes.see
	})
	next := payloadtest.WriteFolder(t, "..", payloadtest.ReleaseContents("next", run.divisor))
	image := registrytest.PushImage(t, trusting(roots), "https://"+mirror.Address+"/mirror/team/wmco", next)
	f.create(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "ImageDigestMirrorSet", "metadata": map[string]any{"name": "scale-fetch"},
		"spec": map[string]any{"imageDigestMirrors": []any{map[string]any{
			"source": "registry.example.com/team/wmco", "mirrors": []any{first.Address + "/mirror/team/wmco", mirror.Address + "/mirror/team/wmco"},
		}}},
	}})
	pod := f.createPod("registry.example.com/team/wmco@" + image)
	f.set(fmt.Sprintf("{fetchNodes: %d, fetchRate: %q}", run.atOnce, run.rate))
	c := f.fetchAll(run, nodes, [2]*distribution.Registry{first, mirror}, operatorFlags{payload: next, pod: pod, metrics: freeAddress(t)})
	t.Log(c)
	c.check(t, run)
}

// startMirrors starts a registry without images, and the one that will have the operator's. The CAs of both are returned.
func startMirrors(t *testing.T) (first, mirror *distribution.Registry, roots *x509.CertPool) {
	t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	o := distribution.Options{Certificate: certificate, Key: key}
	return distribution.Start(t, o), distribution.Start(t, o), roots
}

func trusting(roots *x509.CertPool) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
}

// payloadDigest is that of the executables of a folder for the cluster.
func payloadDigest(t *testing.T, folder string) bundle.Digest {
	t.Helper()
	opened, err := store.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	return opened.Set().For(payload.TestedKubernetes).Digest()
}

// storedBytes is the sum of the stored executables that each node fetches.
func storedBytes(t *testing.T, folder string) (n int64) {
	t.Helper()
	opened, err := store.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range opened.Entries() {
		if x := payload.Find(e.Name); x.Serves(bundle.PlatformNone) && x.ServesKubernetes(payload.TestedKubernetes) && e.Name != payload.Verifier {
			n += e.Stored.Size
		}
	}
	return n
}

// startFetching has the nodes fetch until the end of the test.
func (f *scaled) startFetching(r *reporters, roots *x509.CertPool) *fetchingNodes {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	f.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return startFetching(ctx, r, roots, &running)
}

// createPod makes the Pod of an operator with an image, and returns its name.
func (f *scaled) createPod(image string) string {
	f.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "operator-0"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: managerContainer, Image: "operator"}}}}
	f.create(pod)
	before := client.MergeFrom(pod.DeepCopy())
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: managerContainer, Image: "operator", ImageID: image}}
	f.must(f.Status().Patch(f.t.Context(), pod, before))
	return pod.Name
}

// fetchCosts are what it has cost that all nodes have fetched.
type fetchCosts struct {
	fetchRun
	// each are the bytes that a node needs, took the time from the start of the new operator, until the last node has all.
	each              int64
	took              time.Duration
	shortest, longest time.Duration
	// most nodes have fetched at once.
	most int
	// served and written are the bytes that nodes have received, and that the programs have written, of the first place and of the mirror.
	served, written [2]int64
	// rest, peak and cpu are of the operator before and of the new one, in bytes.
	rest, peak [2]uint64
	cpu        time.Duration
	atRest     float64
	// sent is what the new operator has written: to the API server, and to its log.
	sent int64
	// logins and overSSH are metrics, dialed lines of its log, copies the nodes to which it has tried to copy.
	logins, overSSH string
	dialed          int64
	copies          int
	load            string
}

// fetchAll exchanges the operator, and returns when it has noted that all nodes have its executables. Half way, the first place ends.
func (f *scaled) fetchAll(run fetchRun, nodes *fetchingNodes, places [2]*distribution.Registry, next operatorFlags) *fetchCosts {
	f.t.Helper()
	c := &fetchCosts{fetchRun: run, each: storedBytes(f.t, next.payload)}
	c.rest[0], c.peak[0] = f.operator.memory("VmRSS"), f.operator.memory("VmHWM")
	var before [2]int64
	for i, p := range places {
		before[i] = p.Written()
	}
	ctx, stop := context.WithCancel(f.t.Context())
	defer stop()
	go nodes.beat(ctx)
	f.operator.stop()
	wants, begun := payloadDigest(f.t, next.payload), time.Now()
	f.operator = startOperatorProcess(f.t, &f.programs, next)
	f.seen.awaitSome(f.n/2, "half of the nodes", func(s nodeState) bool { return s.payload == wants })
	places[0].Stop()
	last := f.seen.await("the executables of all nodes", func(s nodeState) bool { return s.payload == wants })
	c.took, c.cpu, c.load = last.Sub(begun), f.operator.cpu(), loadAverage()
	c.rest[1], c.peak[1] = f.operator.memory("VmRSS"), f.operator.memory("VmHWM")
	var err error
	c.sent, err = distribution.WrittenBy(f.operator.Process.Pid)
	f.must(err)
	for i, p := range places {
		c.written[i], c.served[i] = p.Written()-before[i], nodes.receivedFrom(p.Address)
	}
	c.shortest, c.longest, err = nodes.durations()
	f.must(err)
	c.most, c.dialed = nodes.mostAtOnce(), f.operator.dialed.Load()
	c.logins, c.overSSH = f.scrape(next.metrics)
	c.copies = f.countEvents(node.EventPayloadNotCopied) // it has no key to log in with
	c.atRest = f.operator.atRest(5 * time.Second)
	return c
}

// scrape returns how many logins and bytes over SSH the operator counts.
func (f *scaled) scrape(address string) (logins, sent string) {
	f.t.Helper()
	r := &running{Client: f.Client, t: f.t, clock: clocktesting.NewFakeClock(time.Now()), metrics: address}
	_, text := r.scrape(r.reader("scale-reader"))
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "wmco_ssh_logins_total "); ok {
			logins = strings.TrimSpace(value)
		}
		if value, ok := strings.CutPrefix(line, `wmco_ssh_bytes_total{direction="sent"} `); ok {
			sent = strings.TrimSpace(value)
		}
	}
	return logins, sent
}

// countEvents returns about how many objects there are Events of a reason.
func (f *scaled) countEvents(reason string) int {
	f.t.Helper()
	var list eventsv1.EventList
	f.must(f.List(f.t.Context(), &list))
	about := map[string]bool{}
	for _, e := range list.Items {
		if e.Reason == reason {
			about[e.Regarding.Name] = true
		}
	}
	return len(about)
}

func (c *fetchCosts) String() string {
	return fmt.Sprintf("%d nodes, %.1f MB each, %d at once, rate %s: %.1f s from the start of the operator to the last node, %.1f to %.1f s for a node, at most %d at once; "+
		"bytes received by nodes: %d of the first place, %d of the mirror; bytes written by both: %d, %d; operator before: %d MiB, at most %d; operator: %d MiB, at most %d, "+
		"%.1f s of CPU, %.1f%% of one CPU at rest, %.2f MB written, SSH: %s logins, %s bytes, %d lines; load %s",
		c.nodes, float64(c.each)/1e6, c.atOnce, c.rate, c.took.Seconds(), c.shortest.Seconds(), c.longest.Seconds(), c.most,
		c.served[0], c.served[1], c.written[0], c.written[1], c.rest[0]>>20, c.peak[0]>>20, c.rest[1]>>20, c.peak[1]>>20,
		c.cpu.Seconds(), 100*c.atRest, float64(c.sent)/1e6, c.logins, c.overSSH, c.dialed, c.load)
}

// check compares what does not depend on the computer with the limits, and the operator's memory where the variable is set.
func (c *fetchCosts) check(t *testing.T, run fetchRun) {
	t.Helper()
	if c.most > run.atOnce {
		t.Errorf("%d nodes have fetched at once", c.most)
	}
	if c.logins != "0" || c.overSSH != "0" || c.dialed > 0 || c.copies > 0 {
		t.Errorf("over SSH: %s logins, %s bytes, %d lines of the log, %d nodes to be copied to", c.logins, c.overSSH, c.dialed, c.copies)
	}
	all := c.each * int64(run.nodes)
	if c.served[0] > all/100+answerSize*int64(run.nodes) || c.served[1] < all || c.served[1] > all+all/50 {
		t.Errorf("nodes need %d bytes, and have received %d of the first place and %d of the mirror", all, c.served[0], c.served[1])
	}
	if c.sent > ownBytes+ownBytesPerNode*int64(run.nodes) {
		t.Errorf("the operator has written %d bytes", c.sent)
	}
	if limit := resource.MustParse(run.rate); !limit.IsZero() {
		if least := time.Duration(float64(c.each)/limit.AsApproximateFloat64()*float64(time.Second)) - time.Second; c.shortest < least {
			t.Errorf("a node has fetched %d bytes in %s, which takes %s at %s a second", c.each, c.shortest, least, run.rate)
		}
	}
	if run.divisor == 1 && c.peak[1] > uint64(fetchMemory+max(run.nodes-1000, 0)*memoryPerNode) {
		t.Errorf("the operator has used %d MiB", c.peak[1]>>20)
	}
}

const (
	// answerSize is of the answer of a place without the image, in bytes.
	answerSize = 1 << 10
	// ownBytes and ownBytesPerNode are what the operator may write to the API server and to its log, a thousandth of what it would copy to nodes.
	ownBytes, ownBytesPerNode = 8 << 20, 128 << 10
)
