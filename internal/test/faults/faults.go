// Package faults gives a client of the API server the bad days that API servers have, and a clock that is set: what
// tests of the operator run it through.
//
//	client --RoundTrip--> Network: as the present Fault --> API server
//	client --Now--> Network: the wall clock, as the Fault sets it
//
// Requests for Leases and Events pass: they are no work of the operator, and a lost Lease is a case of its own.
//
// What no network can do, and what has always held:
//
//	a leader is frozen                          TestALeaderThatWasFrozenChangesNothing: a join, a removal and a rollout wait for it
//	two operators lead                          TestWorld (two operators lead)
//	etcd is restored                            TestJoinsAndRemovalsWhenEtcdIsRestored, TestWorld (etcd restored)
//	addresses are used again                    TestMachinesGetTheAddressesOfThoseThatGo
//	clocks of nodes are wrong                   TestSilenceIsWhatThisProcessHasSeen, TestRandomFleets
//	rights are taken away and given back        TestARightToWriteThatIsTakenAway, TestMachinesThatAreRefusedWhileTheOperatorWorks
//	the kinds of mirror sets are deleted        TestTheKindsOfMirrorsAreDeletedWhileTheOperatorRuns
//	a thousand changes of what a node is told   TestChangesOfOneMomentEndWithTheLast
//	a damaged kubeconfig, renewed certificates  TestTheClusterIsConnectedToWhenTheKubeletHasItsCertificate, TestARenewedCertificateIsUsed
//	a Machine has the addresses of two Nodes    TestRecordsSayWhichHostANodeIs
package faults

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// Fault is one kind of bad day.
type Fault string

const (
	// None passes everything.
	None Fault = ""
	// CutWatches ends all watches each second, as a load balancer that restarts does.
	CutWatches Fault = "watches are cut"
	// GarbledWatches ends all watches each second as well, with bytes that are no event, as a proxy does that answers
	// for the API server.
	GarbledWatches Fault = "watches bring garbage"
	// Gone ends all watches too, and answers two of five that go on from a version with 410: that version is compacted.
	Gone Fault = "versions are gone"
	// TooManyRequests answers two of five requests with 429 and Retry-After, as priority and fairness does.
	TooManyRequests Fault = "429 with Retry-After"
	// ServerErrors answers two of five requests with 500, 503 or 504.
	ServerErrors Fault = "5xx"
	// Denied refuses two of five writes with 400 or 403, as an admission webhook does (k8s.io/apiserver,
	// admission/plugin/webhook/errors).
	Denied Fault = "writes are denied"
	// CutBodies ends two of five answers in the middle.
	CutBodies Fault = "bodies are cut"
	// LostAnswers lets two of five writes happen, and loses their answers.
	LostAnswers Fault = "answers of writes are lost"
	// SlowWrites lets each write happen half a second late.
	SlowWrites Fault = "writes are slow"
	// SkewedClock sets the wall clock of the client every two seconds, an hour ahead and half an hour back in turns,
	// and right in the end.
	SkewedClock Fault = "the clock is set"
)

// All returns every Fault but None.
func All() []Fault {
	return []Fault{CutWatches, GarbledWatches, Gone, TooManyRequests, ServerErrors, Denied, CutBodies, LostAnswers, SlowWrites, SkewedClock}
}

// Whole reports whether the tests go through everything, however long it takes.
func Whole() bool { return os.Getenv("WMCO_FAULTS") == "all" }

// OfJoins returns those that each run of the tests lets joins and removals go through; every one with WMCO_FAULTS=all.
func OfJoins() []Fault {
	if Whole() {
		return All()
	}
	return []Fault{ServerErrors, Denied, LostAnswers, CutBodies, GarbledWatches, SkewedClock}
}

const (
	// watchLife is how long a watch lives at most with CutWatches, GarbledWatches and Gone.
	watchLife = time.Second
	// share is how many requests in a hundred are hit, where not every one is.
	share = 40
	// slowness is how late a write is with SlowWrites.
	slowness = 500 * time.Millisecond
	// retryAfter is in whole seconds, as the header is (RFC 9110, section 10.2.3).
	retryAfter = 1
)

// ErrLost is what a client gets instead of an answer.
var ErrLost = errors.New("the connection to the API server was lost")

// Network is between one client and the API server. The zero value passes everything.
type Network struct {
	fault atomic.Value
	// begun is when it was set.
	begun atomic.Value
	hits  atomic.Int64

	// mu guards random and the watches that are open.
	mu     sync.Mutex
	random *rand.Rand
	open   map[*watchBody]bool
}

// New returns a network whose choices are those of the seed.
func New(seed uint64) *Network { return &Network{random: rand.New(rand.NewPCG(seed, 0))} } //nolint:gosec // tests repeat

// Set makes the bad day begin, or with None end. It returns how many requests the one before has hit; the clock is one.
func (n *Network) Set(f Fault) int64 {
	n.begun.Store(time.Now())
	n.fault.Store(f)
	hits := n.hits.Swap(0)
	if f == SkewedClock {
		n.hits.Add(1) // at once; a short fault may not look at it
	}
	if cutsWatches(f) {
		go n.cutWatches(f)
	}
	return hits
}

func cutsWatches(f Fault) bool { return f == CutWatches || f == GarbledWatches || f == Gone }

// cutWatches ends every watch each second, until the fault is over.
func (n *Network) cutWatches(f Fault) {
	for n.isFault(f) {
		n.mu.Lock()
		open := slices.Collect(maps.Keys(n.open))
		n.mu.Unlock()
		for _, w := range open {
			n.hits.Add(1)
			w.garbled.Store(f == GarbledWatches)
			_ = w.Close() // as if the connection had ended
		}
		time.Sleep(watchLife) // what the fault is
	}
}

func (n *Network) isFault(f Fault) bool { return n.fault.Load() == f }

// watchBody is the answer to a watch that is open.
type watchBody struct {
	io.ReadCloser
	network *Network
	// garbled reports whether something is read that is no event when it has ended.
	garbled atomic.Bool
}

// garbage is no event in JSON, and as protobuf it is one of an impossible length.
const garbage = "\xff\xff\xff\x7f<html>the service is not available</html>\n"

func (b *watchBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.garbled.CompareAndSwap(true, false) {
		return copy(p, garbage), nil
	}
	return n, err
}

func (b *watchBody) Close() error {
	b.network.mu.Lock()
	delete(b.network.open, b)
	b.network.mu.Unlock()
	return b.ReadCloser.Close()
}

// Hits is how many requests were hit since Set.
func (n *Network) Hits() int64 { return n.hits.Load() }

// Wrap is for rest.Config.Wrap.
func (n *Network) Wrap(next http.RoundTripper) http.RoundTripper { return transport{n, next} }

type transport struct {
	*Network
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	fault, _ := t.fault.Load().(Fault)
	if r.URL.Query().Get("watch") != "" {
		return t.answerWatch(fault, r)
	}
	if fault == None || strings.Contains(r.URL.Path, "/leases") || strings.Contains(r.URL.Path, "/events") {
		return t.next.RoundTrip(r)
	}
	switch {
	case fault == SlowWrites && isWrite(r):
		t.hits.Add(1)
		time.Sleep(slowness) // what the fault is
	case fault == TooManyRequests && t.isHit():
		return t.answerFault(r, http.StatusTooManyRequests), nil
	case fault == ServerErrors && t.isHit():
		return t.answerFault(r, t.oneOf(http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout)), nil
	case fault == Denied && isWrite(r) && !strings.Contains(r.URL.Path, "reviews") && t.isHit():
		return t.answerFault(r, t.oneOf(http.StatusBadRequest, http.StatusForbidden)), nil
	}
	answer, err := t.next.RoundTrip(r)
	switch {
	case err != nil:
		return nil, err
	case fault == LostAnswers && isWrite(r) && t.isHit():
		t.hits.Add(1)
		_ = answer.Body.Close() // the client gets nothing of it
		return nil, ErrLost
	case fault == CutBodies && t.isHit():
		t.hits.Add(1)
		return cutInHalf(answer)
	}
	return answer, nil
}

// answerWatch is for a request that begins a watch.
func (t transport) answerWatch(f Fault, r *http.Request) (*http.Response, error) {
	// A reflector that begins from nothing, or from an initial list that is streamed, is served.
	if from := r.URL.Query().Get("resourceVersion"); f == Gone && from != "" && from != "0" && r.URL.Query().Get("sendInitialEvents") == "" && t.isHit() {
		return t.answerFault(r, http.StatusGone), nil
	}
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body := &watchBody{ReadCloser: answer.Body, network: t.Network}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[*watchBody]bool{}
	}
	t.open[body], answer.Body = true, body
	return answer, nil
}

func isWrite(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// isHit reports whether a request is hit. The first one is: there may be few.
func (n *Network) isHit() bool { return n.Hits() == 0 || n.randomNumber(100) < share } //nolint:mnd // percent

func (n *Network) randomNumber(below int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.random == nil {
		n.random = rand.New(rand.NewPCG(0, 0)) //nolint:gosec // tests repeat
	}
	return n.random.IntN(below)
}

func (n *Network) oneOf(codes ...int) int { return codes[n.randomNumber(len(codes))] }

// answerFault is the answer of an API server that has not done anything.
func (t transport) answerFault(r *http.Request, code int) *http.Response {
	t.hits.Add(1)
	status := &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), //nolint:gosec // three digits
		Message: fmt.Sprintf("%s %s: %s, by a test", r.Method, r.URL.Path, http.StatusText(code)), Reason: reasonOf(code),
	}
	if code == http.StatusTooManyRequests {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	}
	var body bytes.Buffer
	_ = json.NewSerializerWithOptions(json.DefaultMetaFactory, runtime.NewScheme(), runtime.NewScheme(), json.SerializerOptions{}).Encode(status, &body) // into memory
	header := http.Header{"Content-Type": {runtime.ContentTypeJSON}}
	if code == http.StatusTooManyRequests {
		header.Set("Retry-After", strconv.Itoa(retryAfter))
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(&body), ContentLength: int64(body.Len()), Request: r,
	}
}

func reasonOf(code int) metav1.StatusReason {
	switch code {
	case http.StatusBadRequest:
		return metav1.StatusReasonUnknown // the webhook says none
	case http.StatusForbidden:
		return metav1.StatusReasonForbidden
	case http.StatusGone:
		return metav1.StatusReasonExpired
	case http.StatusTooManyRequests:
		return metav1.StatusReasonTooManyRequests
	case http.StatusServiceUnavailable:
		return metav1.StatusReasonServiceUnavailable
	case http.StatusGatewayTimeout:
		return metav1.StatusReasonTimeout
	}
	return metav1.StatusReasonInternalError
}

// cutInHalf returns an answer of which the second half is lost.
func cutInHalf(answer *http.Response) (*http.Response, error) {
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if err := answer.Body.Close(); err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(io.MultiReader(bytes.NewReader(all[:len(all)/2]), lost{}))
	return answer, nil
}

// lost is the rest of a body that does not come.
type lost struct{}

func (lost) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
