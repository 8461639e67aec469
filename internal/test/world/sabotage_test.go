package world

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"wmco/bundle/published"
	"wmco/internal/test/simnode/cluster"
)

// sabotage is a fault in the operator: it does more or less than it should. Each is one that the observer has to find.
type sabotage string

const (
	// tooMany cordons a second node with each node that is cordoned, whatever maxUnavailable is.
	tooMany sabotage = "more nodes are cordoned than may be"
	// leftCordon removes no cordon.
	leftCordon sabotage = "a cordon is left"
	// shownSecret writes the password of the proxy on a Node.
	shownSecret sabotage = "a secret is on a Node"
	// leftLayers deletes no Secret of a layer that no node needs.
	leftLayers sabotage = "Secrets are left"
	// withheld publishes nothing for one node.
	withheld sabotage = "a bundle is not published"
	// leakedGoroutines starts goroutines that end with the world.
	leakedGoroutines sabotage = "goroutines are left"
	// leakedMemory keeps what it allocates.
	leakedMemory sabotage = "memory is left"
)

// sabotages are given to one life of the operator together.
type sabotages []sabotage

// allSabotages are all of them. Those of one life do not hide each other.
func allSabotages() []sabotages {
	return []sabotages{{tooMany}, {leftCordon}, {shownSecret, withheld}, {leftLayers, leakedGoroutines, leakedMemory}}
}

const betweenSabotages = ";"

func (s sabotages) encode() string {
	var names []string
	for _, x := range s {
		names = append(names, string(x))
	}
	return strings.Join(names, betweenSabotages)
}

func (s sabotages) has(x sabotage) bool { return slices.Contains(s, x) }

// wrap is for rest.Config.Wrap.
func (s sabotages) wrap(next http.RoundTripper) http.RoundTripper {
	return sabotaged{s, next}
}

// leak grows each time that the process is asked what it uses: by more than it may between two rests.
func (s sabotages) leak(kept [][]byte, ctx context.Context) [][]byte { //nolint:revive // kept is what it is about
	if s.has(leakedGoroutines) {
		for range moreGoroutines + 1 {
			go func() { <-ctx.Done() }()
		}
	}
	if s.has(leakedMemory) {
		kept = append(kept, make([]byte, 4*moreHeap))
	}
	return kept
}

type sabotaged struct {
	sabotages
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (s sabotaged) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.has(leftLayers) && r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/secrets") {
		return answer(r, http.StatusOK, `{"kind":"Status","apiVersion":"v1","status":"Success"}`), nil
	}
	name, isNode := strings.CutPrefix(r.URL.Path, "/api/v1/nodes/")
	if !isNode || r.Method != http.MethodPatch || strings.Contains(name, "/") {
		return s.next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	changed, also := s.change(name, body)
	for _, other := range also {
		if err := s.patch(r, other, changed); err != nil {
			return nil, err
		}
	}
	return s.next.RoundTrip(withBody(r, changed))
}

// change returns the new body of the Node, and the names of Nodes that are written too.
func (s sabotaged) change(name string, body []byte) (changed []byte, also []string) {
	var patch map[string]any
	if err := json.Unmarshal(body, &patch); err != nil {
		return body, nil
	}
	spec, _ := patch["spec"].(map[string]any)
	metadata, _ := patch["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	cordons, speaks := spec["unschedulable"].(bool)
	switch {
	case s.has(tooMany) && cordons:
		delete(metadata, "resourceVersion")
		delete(metadata, "uid")
		also = []string{cluster.NodeName(0), cluster.NodeName(1)}
	case s.has(leftCordon) && speaks && !cordons:
		delete(spec, "unschedulable")
		delete(annotations, published.CordonAnnotation)
	case s.has(withheld) && name == cluster.NodeName(2) && annotations[published.DesiredAnnotation] != nil:
		delete(annotations, published.DesiredAnnotation)
	case s.has(shownSecret) && annotations != nil:
		annotations["example.com/proxy"] = firstSecret
	}
	changed, err := json.Marshal(patch)
	if err != nil {
		return body, nil
	}
	return changed, also
}

func (s sabotaged) patch(like *http.Request, node string, body []byte) error {
	r := withBody(like.Clone(like.Context()), body)
	r.URL.Path = "/api/v1/nodes/" + node
	answer, err := s.next.RoundTrip(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func withBody(r *http.Request, body []byte) *http.Request {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return r
}

// answer is the answer to a request that the API server never sees.
func answer(r *http.Request, code int, body string) *http.Response {
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}
