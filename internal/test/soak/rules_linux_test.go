package soak

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// scene is what an observer sees, and its clock.
type scene struct {
	*observer
	t       *testing.T
	at      time.Time
	version int
	nodes   map[string]*corev1.Node
}

func newScene(t *testing.T, names ...string) *scene {
	t.Helper()
	s := &scene{t: t, at: time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC), nodes: map[string]*corev1.Node{}}
	s.observer = newObserver(func() time.Time { return s.at })
	for _, name := range names {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			published.DesiredAnnotation: "not read here", published.ReportAnnotation: "not read here",
		}}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		s.nodes[name] = n
		s.change(name, func(*corev1.Node) {})
	}
	return s
}

// change changes a Node, and shows it.
func (s *scene) change(name string, change func(*corev1.Node)) {
	n := s.nodes[name].DeepCopy()
	change(n)
	s.version++
	n.ResourceVersion = fmt.Sprint(s.version)
	s.nodes[name] = n
	s.seeNode(*n.DeepCopy())
}

func cordon(n *corev1.Node) {
	n.Spec.Unschedulable = true
	n.Annotations[published.CordonAnnotation] = published.CordonedForRollout
}

func uncordon(n *corev1.Node) {
	n.Spec.Unschedulable = false
	delete(n.Annotations, published.CordonAnnotation)
}

// rolledBack reports the end of an adoption, as an operator does.
func rolledBack(n *corev1.Node) {
	n.Annotations[published.ReportAnnotation] = `{"schema":1,"state":"RolledBack","adopting":true,"message":"a service is not healthy"}`
}

func byAdministrator(n *corev1.Node) { n.Spec.Unschedulable = true }

func (s *scene) hold(n *corev1.Node) {
	s.t.Helper()
	text, err := windowsnode.RolloutState{Claim: windowsnode.Claim{Taken: s.at, Held: true}}.Encode()
	must(s.t, err)
	n.Annotations[published.RolloutAnnotation] = text
}

func (s *scene) evict(node string) {
	s.version++
	now := metav1.NewTime(s.at)
	s.seePod(corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: "a", ResourceVersion: fmt.Sprint(s.version), DeletionTimestamp: &now}, Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget, Reason: "EvictionByEvictionAPI"}}},
	})
}

// TestRules shows each rule that needs no cluster what it must find, and what it must not.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		name string
		see  func(*scene)
		want string
	}{
		{"one node after the other is cordoned", func(s *scene) {
			s.change("a", cordon)
			s.change("a", uncordon)
			s.change("b", cordon)
		}, ""},
		{"two nodes are cordoned", func(s *scene) {
			s.change("a", cordon)
			s.change("b", cordon)
		}, ruleAway},
		{"two nodes are held", func(s *scene) {
			s.change("a", s.hold)
			s.change("b", s.hold)
		}, ruleAway},
		{"a node is cordoned while another one is away for long", func(s *scene) {
			s.change("a", byAdministrator)
			s.at = s.at.Add(time.Minute)
			s.change("b", cordon)
		}, ruleAway},
		{"a node is cordoned while another one has just gone away", func(s *scene) {
			s.change("a", byAdministrator)
			s.at = s.at.Add(time.Second)
			s.change("b", cordon)
		}, ""},
		{"a node is cordoned after another one went away unseen", func(s *scene) {
			s.change("a", byAdministrator)
			s.at = s.at.Add(time.Minute)
			s.disturb()
			s.change("b", cordon)
		}, ""},
		{"two nodes are cordoned where two may be", func(s *scene) {
			s.allow(2)
			s.change("a", cordon)
			s.change("b", cordon)
		}, ""},
		{"the limit was two until the last rest", func(s *scene) {
			s.allow(2)
			s.restAt(1)
			s.change("a", cordon)
			s.change("b", cordon)
		}, ruleAway},
		{"a list has two cordoned nodes", func(s *scene) {
			cordon(s.nodes["a"])
			cordon(s.nodes["b"])
			s.replaceNodes([]corev1.Node{*s.nodes["a"], *s.nodes["b"]}, 100)
		}, ruleAway},
		{"a cordoned node is deleted, another one is cordoned", func(s *scene) {
			s.change("a", cordon)
			s.deleteNode(*s.nodes["a"])
			s.change("b", cordon)
		}, ""},
		{"a cordon is left", func(s *scene) {
			s.change("a", cordon)
			s.checkLeft()
		}, ruleCordon},
		{"a claim is left", func(s *scene) {
			s.change("a", s.hold)
			s.checkLeft()
		}, ruleCordon},
		{"the cordon of an administrator is there", func(s *scene) {
			s.change("a", byAdministrator)
			s.checkLeft()
		}, ""},
		{"a secret is in an annotation", func(s *scene) {
			s.hide("secret")
			s.change("a", func(n *corev1.Node) { n.Annotations["example.com/any"] = "a secret text" })
		}, ruleSecret},
		{"a secret is in a condition", func(s *scene) {
			s.hide("secret")
			s.change("a", func(n *corev1.Node) { n.Status.Conditions[0].Message = "secret" })
		}, ruleSecret},
		{"an adoption is rolled back", func(s *scene) { s.change("a", rolledBack) }, ruleBack},
		{"a pod is evicted from a node that is held", func(s *scene) {
			s.change("a", s.hold)
			s.evict("a")
			s.checkEvictions()
		}, ""},
		{"a pod is evicted from a node that was held", func(s *scene) {
			s.change("a", s.hold)
			s.change("a", func(n *corev1.Node) { delete(n.Annotations, published.RolloutAnnotation) })
			s.evict("a")
			s.checkEvictions()
		}, ruleEvicted},
		{"a pod is evicted from a node that is held later", func(s *scene) {
			s.evict("a")
			s.change("a", s.hold)
			s.checkEvictions()
		}, ruleEvicted},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, "a", "b")
			c.see(s)
			var rules []string
			for _, v := range s.violations() {
				rules = append(rules, v.rule)
			}
			rules = slices.Compact(rules)
			if want := slices.DeleteFunc([]string{c.want}, func(r string) bool { return r == "" }); !slices.Equal(rules, want) {
				t.Errorf("violations %+v, want %q", s.violations(), want)
			}
		})
	}
}

// TestAnAdoptionThatRestartsMoreThanItNeedsIsFound: each service once where the plan says so, or once for each bundle where more than one was published.
func TestAnAdoptionThatRestartsMoreThanItNeedsIsFound(t *testing.T) {
	planned, other := bundle.Of([]byte("planned")), bundle.Of([]byte("other"))
	a := adopting{before: map[string]int{"kubelet": 1, "csi-proxy": 1}, planned: map[string]bool{"kubelet": true}, bundle: planned}
	for _, c := range []struct {
		name    string
		after   map[string]int
		bundles []bundle.Digest
		want    int
	}{
		{"what is planned is restarted", map[string]int{"kubelet": 2, "csi-proxy": 1}, []bundle.Digest{planned}, 0},
		{"it is restarted twice", map[string]int{"kubelet": 3, "csi-proxy": 1}, []bundle.Digest{planned}, 1},
		{"what is right is restarted", map[string]int{"kubelet": 2, "csi-proxy": 2}, []bundle.Digest{planned}, 1},
		{"the plan of another bundle is not known", map[string]int{"kubelet": 2, "csi-proxy": 2}, []bundle.Digest{other}, 0},
		{"two bundles were published", map[string]int{"kubelet": 3, "csi-proxy": 2}, []bundle.Digest{planned, other}, 0},
		{"a service is restarted more often than that", map[string]int{"kubelet": 4, "csi-proxy": 2}, []bundle.Digest{planned, other}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			bundles := map[bundle.Digest]bool{}
			for _, b := range c.bundles {
				bundles[b] = true
			}
			if list := a.restartsTooMuch(c.after, bundles); len(list) != c.want {
				t.Errorf("found %q", list)
			}
		})
	}
}
