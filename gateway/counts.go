package gateway

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"

	"wmco/gateway/places"
)

// result is how a place has answered a request.
type result string

const (
	resultServed  result = "served"
	resultMissing result = "missing"
	resultFailed  result = "failed"
)

// cause is why a request was refused.
type cause string

const (
	causePolicy        cause = "policy"
	causeConfiguration cause = "configuration"
	causePlaces        cause = "places"
)

// counts are numbers since the start, for Prometheus. Its methods are safe for concurrent use.
type counts struct {
	// write replaces the file with them; nil for none.
	write func([]byte) error

	mu       sync.Mutex
	requests map[requestKey]int64
	bytes    map[string]int64
	refused  map[refusedKey]int64
	written  []byte
}

type requestKey struct {
	place  string
	result result
}

type refusedKey struct {
	registry string
	cause    cause
}

func newCounts(write func([]byte) error) *counts {
	return &counts{write: write, requests: map[requestKey]int64{}, bytes: map[string]int64{}, refused: map[refusedKey]int64{}}
}

const (
	// maxCounted bounds how many registries are counted by name. A table for all registries has no bound of its own.
	maxCounted = 256
	otherName  = "other"
)

// countedName returns the name under which a registry is counted.
func countedName[K comparable](have map[K]int64, key K, name string) string {
	if _, known := have[key]; known || len(have) < maxCounted {
		return name
	}
	return otherName
}

func (c *counts) addRequest(p places.Place, r result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[requestKey{countedName(c.requests, requestKey{p.Registry, r}, p.Registry), r}]++
}

func (c *counts) addBytes(p places.Place, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes[countedName(c.bytes, p.Registry, p.Registry)] += int64(n)
}

func (c *counts) addRefused(registry string, why cause) {
	registry = strings.ToLower(registry)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused[refusedKey{countedName(c.refused, refusedKey{registry, why}, registry), why}]++
}

// encodeText returns the numbers in Prometheus' text format (prometheus.io/docs/instrumenting/exposition_formats). The names of registries have nothing in
// them that must be escaped.
func (c *counts) encodeText() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out bytes.Buffer
	family := func(name, help string, lines []string) {
		fmt.Fprintf(&out, "# HELP %s %s\n# TYPE %s counter\n", name, help, name)
		slices.Sort(lines)
		for _, l := range lines {
			fmt.Fprintf(&out, "%s%s\n", name, l)
		}
	}
	var lines []string
	for k, n := range c.requests {
		lines = append(lines, fmt.Sprintf("{place=%q,result=%q} %d", k.place, k.result, n))
	}
	family("wmco_image_gateway_requests_total", "Requests to mirrors and registries, by how they were answered.", lines)
	lines = nil
	for place, n := range c.bytes {
		lines = append(lines, fmt.Sprintf("{place=%q} %d", place, n))
	}
	family("wmco_image_gateway_bytes_total", "Bytes of manifests and layers that were passed on to containerd.", lines)
	lines = nil
	for k, n := range c.refused {
		lines = append(lines, fmt.Sprintf("{registry=%q,cause=%q} %d", k.registry, k.cause, n))
	}
	family("wmco_image_gateway_refused_total", "Requests of containerd that were refused.", lines)
	return out.Bytes()
}

// WriteCounts writes the numbers if they have changed since the last write.
func (h *Handler) WriteCounts() {
	c := h.counts
	if c.write == nil {
		return
	}
	data := c.encodeText()
	if bytes.Equal(data, c.written) {
		return
	}
	if err := c.write(data); err != nil {
		h.log.Warn("the numbers for Prometheus are written later", "error", err)
		return
	}
	c.written = data
}
