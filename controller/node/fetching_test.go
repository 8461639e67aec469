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
		silence: windowsnode.SilenceByKubelet, elapsed: func() time.Duration { return s.now },
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
	for name, c := range map[string]struct {
		change    func(s *fetchScene, c *configure.Chosen)
		any, only way
	}{
		"nothing yet": {func(*fetchScene, *configure.Chosen) {}, wayFetch, wayFetch},
		"no list":     {func(_ *fetchScene, c *configure.Chosen) { c.Listed = false }, wayCopy, wayNone},
		"an older agent": {func(s *fetchScene, _ *configure.Chosen) {
			s.change(0, "", func(r *published.Report) { r.Features = nil })
		}, wayCopy, wayNone},
		"no report": {func(s *fetchScene, _ *configure.Chosen) { s.nodes[0] = windowsnode.Decode(corev1.Node{}) }, wayCopy, wayNone},
		"SSH alone": {func(_ *fetchScene, c *configure.Chosen) { c.From = render.ExecutablesFromSSH }, wayCopy, wayCopy},
		"it fetches": {func(s *fetchScene, _ *configure.Chosen) {
			s.change(0, payload, func(r *published.Report) { r.Fetch = published.FetchProgress{Payload: payload, Wanted: 9, Present: 1} })
		}, wayFetch, wayFetch},
		"it has all": {func(s *fetchScene, _ *configure.Chosen) {
			s.change(0, payload, func(r *published.Report) { r.Fetch = published.FetchProgress{Payload: payload, Done: true} })
		}, wayDone, wayDone},
		"it has others": {func(s *fetchScene, _ *configure.Chosen) {
			s.change(0, payload, func(r *published.Report) {
				r.Fetch = published.FetchProgress{Payload: bundle.Of([]byte("other")), Done: true}
			})
		}, wayFetch, wayFetch},
		"registries fail": {func(s *fetchScene, _ *configure.Chosen) {
			s.change(0, payload, func(r *published.Report) {
				r.Fetch = published.FetchProgress{Payload: payload, Failed: true, Message: "401"}
			})
		}, wayCopy, wayNone},
		"it was not asked": {func(s *fetchScene, _ *configure.Chosen) {
			s.change(0, "", func(r *published.Report) { r.Fetch = published.FetchProgress{Payload: payload, Done: true} })
		}, wayFetch, wayFetch},
		"makes no progress": {func(s *fetchScene, c *configure.Chosen) {
			s.change(0, payload, func(*published.Report) {})
			_, _ = s.chooseWay(context.Background(), s.nodes[0], *c)
			s.now += fetchPatience + time.Second
		}, wayCopy, wayNone},
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

// TestFewNodesFetchAtOnce: the next ones follow when those that fetch have ended, are off, or make no progress.
func TestFewNodesFetchAtOnce(t *testing.T) {
	c := chosen(render.ExecutablesFromAny)
	permitted := func() *fetchScene {
		s := newFetchScene(4)
		for i := range 2 {
			if got := s.choose(t, i, c); got != wayFetch {
				t.Errorf("node %d: %d", i, got)
			}
		}
		if got := s.choose(t, 2, c); got != wayWait {
			t.Errorf("a third one that the cache does not show yet: %d", got)
		}
		for i := range 2 {
			s.change(i, c.Digest, func(*published.Report) {})
		}
		s.now += time.Minute
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
		"is gone":           func(s *fetchScene) { s.nodes[0] = s.nodes[3] },
		"is permitted none": func(s *fetchScene) { s.change(0, "", func(*published.Report) {}) },
		"makes no progress": func(s *fetchScene) { s.now += fetchPatience; s.noteProgress("n1", published.FetchProgress{}) },
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
	s.forgetNode("n0")
	s.change(0, "", func(*published.Report) {})
	if got := s.choose(t, 2, c); got != wayFetch {
		t.Errorf("one has ended: %d", got)
	}
}
