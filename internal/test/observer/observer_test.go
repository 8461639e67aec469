package observer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// scene is what an observer sees, and its clock.
type scene struct {
	*Observer
	t       *testing.T
	at      time.Time
	version int
	nodes   map[string]*corev1.Node
}

func newScene(t *testing.T, names ...string) *scene {
	t.Helper()
	s := &scene{t: t, at: time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC), nodes: map[string]*corev1.Node{}}
	s.Observer = New(func() time.Time { return s.at }, 45*time.Second)
	s.KeepRules(Rules{Unavailable: intstr.FromInt32(1)})
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

func byAdministrator(n *corev1.Node) { n.Spec.Unschedulable = true }

func (s *scene) hold(n *corev1.Node) {
	s.t.Helper()
	text, err := windowsnode.RolloutState{Slot: windowsnode.Slot{Taken: s.at, Held: true}}.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	n.Annotations[published.RolloutAnnotation] = text
}

// restart notes that the services of a node may restart, and that they have not yet.
func (s *scene) restart(n *corev1.Node) {
	s.t.Helper()
	layer := func(text string) published.Layer {
		return published.Layer{Digest: bundle.Of([]byte(text)), Inline: []byte(text)}
	}
	d := published.Desired{MaxImpact: bundle.ImpactRestart, Cluster: layer("cluster"), Node: layer("node")}
	var err error
	d.Bundle, err = bundle.DigestLayers(d.Cluster.Digest, d.Node.Digest)
	if err == nil {
		n.Annotations[published.DesiredAnnotation], err = d.Encode()
	}
	if err == nil {
		n.Annotations[published.ReportAnnotation], err = published.Report{State: published.StateApplying}.Encode()
	}
	if err != nil {
		s.t.Fatal(err)
	}
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
	two := Rules{Unavailable: intstr.FromInt32(2)}
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
		}, RuleAway},
		{"two nodes are held", func(s *scene) {
			s.change("a", s.hold)
			s.change("b", s.hold)
		}, RuleAway},
		{"a node is cordoned while another one is away for long", func(s *scene) {
			s.change("a", byAdministrator)
			s.at = s.at.Add(time.Minute)
			s.change("b", cordon)
		}, RuleAway},
		{"a node is cordoned while another one has just gone away", func(s *scene) {
			s.change("a", byAdministrator)
			s.at = s.at.Add(time.Second)
			s.change("b", cordon)
		}, ""},
		{"a node is cordoned after another one went away unseen", func(s *scene) {
			s.change("a", byAdministrator)
			s.at = s.at.Add(time.Minute)
			s.Disturb()
			s.change("b", cordon)
		}, ""},
		{"two nodes are cordoned where two may be", func(s *scene) {
			s.AllowRules(two)
			s.change("a", cordon)
			s.change("b", cordon)
		}, ""},
		{"the limit was two until the last rest", func(s *scene) {
			s.AllowRules(two)
			s.KeepRules(Rules{Unavailable: intstr.FromInt32(1)})
			s.change("a", cordon)
			s.change("b", cordon)
		}, RuleAway},
		{"a list has two cordoned nodes", func(s *scene) {
			cordon(s.nodes["a"])
			cordon(s.nodes["b"])
			s.replaceNodes([]corev1.Node{*s.nodes["a"], *s.nodes["b"]}, 100)
		}, RuleAway},
		{"a cordoned node is deleted, another one is cordoned", func(s *scene) {
			s.change("a", cordon)
			s.deleteNode(*s.nodes["a"])
			s.change("b", cordon)
		}, ""},
		{"two nodes are cordoned by two operators", func(s *scene) {
			s.KeepRules(Rules{Unavailable: intstr.FromInt32(1), Operators: 2})
			s.change("a", cordon)
			s.change("b", cordon)
		}, ""},
		{"two nodes are held by two operators", func(s *scene) {
			s.KeepRules(Rules{Unavailable: intstr.FromInt32(1), Operators: 2})
			s.change("a", s.hold)
			s.change("b", s.hold)
		}, RuleAway},
		{"half of the nodes may be away", func(s *scene) {
			s.KeepRules(Rules{Unavailable: intstr.FromString("50%")})
			s.change("a", cordon)
			s.change("b", cordon)
		}, RuleAway},
		{"two nodes restart services where one may", func(s *scene) {
			s.KeepRules(Rules{Unavailable: intstr.FromInt32(1), Parallel: 1})
			s.change("a", s.restart)
			s.change("b", s.restart)
		}, RuleParallel},
		{"a node that the test itself has stopped does not restart", func(s *scene) {
			s.KeepRules(Rules{Unavailable: intstr.FromInt32(1), Parallel: 1})
			s.Excuse("a", true)
			s.change("a", s.restart)
			s.change("b", s.restart)
		}, ""},
		{"a node that joins is not one that restarts", func(s *scene) {
			s.KeepRules(Rules{Unavailable: intstr.FromInt32(1), Parallel: 1})
			s.change("a", func(n *corev1.Node) { n.Annotations[published.JoiningAnnotation] = "true" })
			s.change("a", s.restart)
			s.change("b", s.restart)
		}, ""},
		{"a node that is removed is one that restarts", func(s *scene) {
			s.KeepRules(Rules{Unavailable: intstr.FromInt32(1), Parallel: 1})
			s.change("a", func(n *corev1.Node) {
				n.Annotations[published.JoiningAnnotation], n.Annotations[published.VersionAnnotation] = "true", "11.0.0"
			})
			s.change("a", s.restart)
			s.change("b", s.restart)
		}, RuleParallel},
		{"an annotation that the operator did not write permits nothing", func(s *scene) {
			s.KeepRules(Rules{Unavailable: intstr.FromInt32(1), Parallel: 1})
			s.change("a", s.restart)
			s.NoteForeign(s.nodes["a"].Annotations[published.DesiredAnnotation])
			s.change("b", s.restart)
		}, ""},
		{"what an administrator did is undone", func(s *scene) {
			s.Protect("a", func(n corev1.Node) string {
				return map[bool]string{false: "the cordon is not there"}[n.Spec.Unschedulable]
			})
			s.change("a", byAdministrator)
			s.change("a", func(n *corev1.Node) { n.Spec.Unschedulable = false })
		}, RuleProtected},
		{"a cordon is left", func(s *scene) {
			s.change("a", cordon)
			s.CheckLeft()
		}, RuleCordon},
		{"a claim is left", func(s *scene) {
			s.change("a", s.hold)
			s.CheckLeft()
		}, RuleCordon},
		{"the cordon of an administrator is there", func(s *scene) {
			s.change("a", byAdministrator)
			s.CheckLeft()
		}, ""},
		{"a secret is in an annotation", func(s *scene) {
			s.HideSecrets("secret")
			s.change("a", func(n *corev1.Node) { n.Annotations["example.com/any"] = "a secret text" })
		}, RuleSecret},
		{"a secret is in a condition", func(s *scene) {
			s.HideSecrets("secret")
			s.change("a", func(n *corev1.Node) { n.Status.Conditions[0].Message = "secret" })
		}, RuleSecret},
		{"a pod is evicted from a node that is held", func(s *scene) {
			s.change("a", s.hold)
			s.evict("a")
			s.CheckEvictions()
		}, ""},
		{"a pod is evicted from a node that was held", func(s *scene) {
			s.change("a", s.hold)
			s.change("a", func(n *corev1.Node) { delete(n.Annotations, published.RolloutAnnotation) })
			s.evict("a")
			s.CheckEvictions()
		}, RuleEvicted},
		{"a pod is evicted from a node that is held later", func(s *scene) {
			s.evict("a")
			s.change("a", s.hold)
			s.CheckEvictions()
		}, RuleEvicted},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, "a", "b")
			c.see(s)
			var rules []string
			for _, v := range s.Violations() {
				rules = append(rules, v.Rule)
			}
			rules = slices.Compact(rules)
			if want := slices.DeleteFunc([]string{c.want}, func(r string) bool { return r == "" }); !slices.Equal(rules, want) {
				t.Errorf("violations %+v, want %q", s.Violations(), want)
			}
		})
	}
}
