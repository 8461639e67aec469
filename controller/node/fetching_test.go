package node

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/configure"
	"wmco/controller/windowsnode"
	"wmco/render"
)

// fetchScene is nodes that may fetch.
type fetchScene struct {
	fetches
	nodes []windowsnode.Node
	now   time.Duration
}

func newFetchScene(n int) *fetchScene {
	s := &fetchScene{}
	s.fetches = fetches{
		countHosts: func() int { return 0 }, silence: windowsnode.SilenceByKubelet, elapsed: func() time.Duration { return s.now },
		list: func(context.Context) ([]windowsnode.Node, error) { return s.nodes, nil },
	}
	for i := range n {
		s.nodes = append(s.nodes, fetchingNode(fmt.Sprint("n", i), "", published.Report{State: published.StateApplied, Features: []published.Feature{published.FeatureFetch}}))
	}
	return s
}

func fetchingNode(name string, permitted bundle.Digest, r published.Report) windowsnode.Node {
	object := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{published.FetchAnnotation: string(permitted)}}}
	object.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(time.Unix(1000, 0))},
		{Type: published.Condition, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(time.Unix(1000, 0))},
	}
	text, err := r.Encode()
	if err != nil {
		panic(err)
	}
	object.Annotations[published.ReportAnnotation] = text
	return windowsnode.Decode(object)
}

// change gives a node a permission and a report.
func (s *fetchScene) change(i int, permitted bundle.Digest, change func(*published.Report)) {
	r := s.nodes[i].Report
	change(&r)
	s.nodes[i] = fetchingNode(s.nodes[i].Name, permitted, r)
}

func (s *fetchScene) choose(t *testing.T, i int, c configure.Chosen) way {
	t.Helper()
	w, err := s.chooseWay(t.Context(), s.nodes[i], c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func chosen(from render.ExecutablesFrom) configure.Chosen {
	return configure.Chosen{Digest: bundle.Of([]byte("payload")), From: from, Listed: true, AtOnce: 2}
}

// TestWaysToGetExecutables: from the registry where the settings, the bundle and the agent allow it, and over SSH where that fails and may be.
func TestWaysToGetExecutables(t *testing.T) {
	payload := chosen("").Digest
	reports := func(p published.FetchProgress) func(*fetchScene, *configure.Chosen) {
		return func(s *fetchScene, c *configure.Chosen) {
			_, _ = s.chooseWay(context.Background(), s.nodes[0], *c)
			s.change(0, payload, func(r *published.Report) { r.Fetch = p })
		}
	}
	for name, c := range map[string]struct {
		change    func(s *fetchScene, c *configure.Chosen)
		any, only way
	}{
		"nothing yet": {func(*fetchScene, *configure.Chosen) {}, wayFetch, wayFetch},
		"no list":     {func(_ *fetchScene, c *configure.Chosen) { c.Listed = false }, wayCopy, wayNone},
		"an older agent": {func(s *fetchScene, _ *configure.Chosen) {
			s.change(0, "", func(r *published.Report) { r.Features = nil })
		}, wayCopy, wayNone},
		"no report":       {func(s *fetchScene, _ *configure.Chosen) { s.nodes[0] = windowsnode.Decode(corev1.Node{}) }, wayCopy, wayNone},
		"SSH alone":       {func(_ *fetchScene, c *configure.Chosen) { c.From = render.ExecutablesFromSSH }, wayCopy, wayCopy},
		"it fetches":      {reports(published.FetchProgress{Payload: payload, Wanted: 9, Present: 1}), wayFetch, wayFetch},
		"it has all":      {reports(published.FetchProgress{Payload: payload, Done: true}), wayDone, wayDone},
		"it has others":   {reports(published.FetchProgress{Payload: bundle.Of([]byte("other")), Done: true}), wayFetch, wayFetch},
		"registries fail": {reports(published.FetchProgress{Payload: payload, Failed: true, Message: "401"}), wayCopy, wayNone},
		"makes no progress": {func(s *fetchScene, c *configure.Chosen) {
			reports(published.FetchProgress{Payload: payload, Wanted: 9, Present: 5})(s, c)
			_, _ = s.chooseWay(context.Background(), s.nodes[0], *c)
			s.now += fetchPatience + time.Second
			reports(published.FetchProgress{Payload: payload, Wanted: 9, Present: 4, Message: "other"})(s, c)
		}, wayCopy, wayNone},
		"another payload is chosen": {func(s *fetchScene, c *configure.Chosen) {
			_, _ = s.chooseWay(context.Background(), s.nodes[0], *c)
			s.now += fetchPatience + time.Second
			c.Digest = bundle.Of([]byte("next"))
		}, wayFetch, wayFetch},
	} {
		for from, want := range map[render.ExecutablesFrom]way{render.ExecutablesFromAny: c.any, render.ExecutablesFromRegistry: c.only} {
			s, chosen := newFetchScene(1), chosen(from)
			c.change(s, &chosen)
			if got := s.choose(t, 0, chosen); got != want {
				t.Errorf("%s, from %s: %d, want %d", name, from, got, want)
			}
		}
	}
}

// TestFewNodesFetchAtOnce: the next ones follow when those that fetch have ended, are off, make no progress, or have had their time, whatever they report.
func TestFewNodesFetchAtOnce(t *testing.T) {
	c := chosen(render.ExecutablesFromAny)
	fetching := func(present int64) func(*published.Report) {
		return func(r *published.Report) {
			r.Fetch = published.FetchProgress{Payload: c.Digest, Wanted: 1 << 40, Present: present}
		}
	}
	permitted := func() *fetchScene {
		s := newFetchScene(4)
		for i := range 2 {
			if got := s.choose(t, i, c); got != wayFetch {
				t.Errorf("node %d: %d", i, got)
			}
		}
		for i := range 2 {
			s.change(i, c.Digest, fetching(1))
			s.choose(t, i, c)
		}
		if got := s.choose(t, 2, c); got != wayWait {
			t.Errorf("a third one: %d", got)
		}
		return s
	}
	for name, end := range map[string]func(*fetchScene){
		"has all": func(s *fetchScene) {
			s.change(0, c.Digest, func(r *published.Report) { r.Fetch = published.FetchProgress{Payload: c.Digest, Done: true} })
		},
		"registries fail": func(s *fetchScene) {
			s.change(0, c.Digest, func(r *published.Report) { r.Fetch = published.FetchProgress{Payload: c.Digest, Failed: true} })
		},
		"is off": func(s *fetchScene) { s.nodes[0].KubeletCondition.Status = corev1.ConditionUnknown },
		"is silent": func(s *fetchScene) {
			s.nodes[0].KubeletCondition.LastHeartbeatTime = metav1.NewTime(time.Unix(1000+3600, 0))
		},
		"is deleted": func(s *fetchScene) { s.nodes[0] = s.nodes[3] },
		"needs none": func(s *fetchScene) { s.forgetNode("n0") },
		"makes no progress": func(s *fetchScene) {
			s.now += fetchPatience
			s.change(1, c.Digest, fetching(2))
			s.choose(t, 1, c)
			s.now += time.Second
		},
	} {
		s := permitted()
		end(s)
		if got := s.choose(t, 2, c); got != wayFetch {
			t.Errorf("one %s: %d", name, got)
		}
		if got := s.choose(t, 3, c); got != wayWait {
			t.Errorf("one %s, a fourth one: %d", name, got)
		}
	}
	s := permitted()
	s.change(0, c.Digest, func(r *published.Report) { r.Fetch = published.FetchProgress{Payload: c.Digest, Done: true} })
	s.countHosts = func() int { return 1 }
	if got := s.choose(t, 2, c); got != wayWait {
		t.Errorf("beside a host that joins: %d", got)
	}
	if n, err := s.countNodes(t.Context()); n != 1 || err != nil {
		t.Errorf("%d nodes are counted for hosts that join: %v", n, err)
	}
	s = permitted()
	for n := int64(2); s.now <= slotLimit; n++ { // they report a byte more every few minutes
		if got := s.choose(t, 2, c); got != wayWait {
			t.Fatalf("a third one after %s: %d", s.now, got)
		}
		s.now += fetchPatience / 2
		for i := range 2 {
			s.change(i, c.Digest, fetching(n))
			s.choose(t, i, c)
		}
	}
	if got := s.choose(t, 2, c); got != wayFetch {
		t.Errorf("after the time of the others: %d", got)
	}
}

// TestAnnotationsOfKubelets take no place: nodes that write the annotation of their own Node keep none from fetching, but for those of before this process.
func TestAnnotationsOfKubelets(t *testing.T) {
	c := chosen(render.ExecutablesFromAny)
	annotated := func(s *fetchScene) {
		for i := range 2 {
			s.change(i, c.Digest, func(*published.Report) {})
		}
	}
	s := newFetchScene(4)
	if got := s.choose(t, 2, c); got != wayFetch {
		t.Errorf("the first one: %d", got)
	}
	annotated(s)
	if got := s.choose(t, 3, c); got != wayFetch {
		t.Errorf("beside two nodes that permit themselves: %d", got)
	}
	s = newFetchScene(4)
	annotated(s)
	if got := s.choose(t, 2, c); got != wayWait {
		t.Errorf("an operator that begins, with two nodes that an earlier one has permitted: %d", got)
	}
}
