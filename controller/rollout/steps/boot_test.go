package steps

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/layers"
	"wmco/controller/rollout/plan"
)

// reports writes a report of a node, whose agent knows of boots.
func (p *plane) reports(name string, r published.Report) {
	p.t.Helper()
	r.Features = published.Features()
	text, err := r.Encode()
	must(p.t, err)
	p.annotate(name, published.ReportAnnotation, text)
}

func (p *plane) annotate(name, key, value string) {
	p.t.Helper()
	n := p.now(name)
	n.Annotations[key] = value
	must(p.t, p.Update(p.t.Context(), &n))
}

// withPod makes a pod on a node that runs until its kubelet ends it, which is never.
func (p *plane) withPod(node string) *corev1.Pod {
	p.t.Helper()
	p.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "default"}})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "kept"},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "registry.example.com/app:1"}}},
	}
	p.create(pod)
	pod.Status.Phase = corev1.PodRunning
	must(p.t, p.Status().Update(p.t.Context(), pod))
	return pod
}

// TestAnAnnotationBootsANode: of two nodes that are annotated, one after the other is cordoned, drained, and told, signed, that its host may boot, also by
// operators that are started in between, while the rollout is paused. A pod that does not end keeps the first one from that.
func TestAnAnnotationBootsANode(t *testing.T) {
	p := newPlane(t)
	has := rendered(t, "has", bundle.ImpactRestart)
	p.twoNodes(has)
	pod := p.withPod("win-1")
	r := Rendered{
		Wanted: map[string]layers.Wanted{"win-1": has, "win-2": has},
		Policy: plan.Policy{MaxUnavailable: intstr.FromInt32(1), MaxParallel: 1, FailureLimit: 1, Timeout: time.Hour},
	}
	names := []string{"win-1", "win-2"}
	for _, name := range names {
		p.reports(name, reported(has))
		p.annotate(name, published.RebootAnnotation, "now")
	}
	var booted []string
	for round := range 30 {
		if round%5 == 4 { // another process of the operator, which remembers nothing
			p.begun = nil
			p.Drains.KeepSlots(nil)
			p.memory = memory{}
		}
		r.Policy.Paused = round > 2 // the rest of a rollout waits, and a boot does not
		_, err := p.RunSteps(t.Context(), r)
		must(t, err)
		for _, name := range p.begun {
			limited, cancel := context.WithTimeout(t.Context(), time.Second)
			_, _ = p.Drains.Reconcile(limited, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}) // the pod does not end in that time
			cancel()
		}
		switch round {
		case 8:
			if len(booted) > 0 || p.now("win-1").Annotations[published.DesiredAnnotation] == "" || !slices.Equal(p.cordoned(names), names[:1]) {
				t.Fatalf("%q may boot, %q are cordoned, while a pod runs on the first one", booted, p.cordoned(names))
			}
			must(t, client.IgnoreNotFound(p.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))) // its kubelet has ended it
		}
		booted = p.bootTold(names, booted, has)
		if away := p.cordoned(names); len(away) > 1 {
			t.Fatalf("%q are unavailable, and one may be", away)
		}
	}
	if !slices.Equal(booted, names) || len(p.cordoned(names)) > 0 {
		t.Errorf("%q have booted, %q are cordoned", booted, p.cordoned(names))
	}
	for _, name := range names {
		if d := p.desired(name); d.Boot != "" || d.MaxImpact != bundle.ImpactRestart {
			t.Errorf("%s is told impact %s, boot %q", name, d.MaxImpact, d.Boot)
		}
	}
}

// bootTold lets the agents of the nodes that are told to boot say that they have, and adds their names.
func (p *plane) bootTold(names, booted []string, has layers.Wanted) []string {
	p.t.Helper()
	for _, name := range names {
		d, n := p.desired(name), p.now(name)
		if d.Boot == "" {
			continue
		}
		if d.Boot != bundle.Of([]byte("now")) || d.MaxImpact != bundle.ImpactReboot || d.PermitFor != 3600 || !n.Spec.Unschedulable || d.Bundle != has.Bundle {
			p.t.Fatalf("%s is told %+v, cordoned %t", name, d, n.Spec.Unschedulable)
		}
		if !slices.Contains(booted, name) {
			booted = append(booted, name)
			done := reported(has)
			done.Rebooted = d.Boot
			p.reports(name, done)
		}
	}
	return booted
}

// cordoned are the nodes that are.
func (p *plane) cordoned(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !p.now(name).Spec.Unschedulable })
}
