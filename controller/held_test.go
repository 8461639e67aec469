package controller

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"wmco/bundle/published"
	"wmco/bundle/reason"
	"wmco/controller/gather"
	"wmco/controller/rollout"
	"wmco/controller/status"
)

// never is a mirror set that lets no node pull the pause image: it is named by a tag, and mirrors are for digests.
func never() *unstructured.Unstructured {
	set := mirrorSet("never", "mcr.microsoft.com")
	mirrors, _, _ := unstructured.NestedSlice(set.Object, "spec", "imageDigestMirrors")
	mirrors[0].(map[string]any)["mirrorSourcePolicy"] = "NeverContactSource" //nolint:forcetypeassert // of mirrorSet
	set.Object["spec"] = map[string]any{"imageDigestMirrors": mirrors}
	return set
}

// checkHeld: a change that would stop all pods reaches no node before it is confirmed, and is over when it is taken back.
func checkHeld(t *testing.T, r *running) {
	first := r.desired("")
	r.condition(status.InputsConfirmed, metav1.ConditionTrue)
	if err := r.Create(t.Context(), never()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Delete(context.Background(), never()) })
	shown := r.condition(status.InputsConfirmed, metav1.ConditionFalse)
	const confirmation = "wmco confirm --all --input " + reason.NodeImageUnreachable
	if shown.Reason != reason.NodeImageUnreachable || !strings.Contains(shown.Message, "1 node (win-a) will keep the published bundle until you confirm the change, because no pod can start without the pause image ") || !strings.Contains(shown.Message, confirmation) {
		t.Errorf("%+v", shown)
	}
	// One warning is always there: an entry whose name cannot be resolved.
	if c := r.condition(status.InputsClean, metav1.ConditionFalse); c.Reason != status.ReasonWarned || !strings.Contains(c.Message, "no pod can start") {
		t.Errorf("%+v", c)
	}
	if c := r.condition(status.Degraded, metav1.ConditionTrue); c.Reason != reason.NodeImageUnreachable || !strings.Contains(c.Message, confirmation) {
		t.Errorf("%+v", c)
	}
	for _, name := range []string{rollout.EventChangeHeld, reason.NodeImageUnreachable} {
		if e := r.event(gather.OperatorNamespace, name, operatorName); !strings.Contains(e["note"].(string), "no pod can start") { //nolint:forcetypeassert // of an API server
			t.Errorf("%s: %v", name, e["note"])
		}
	}
	if now := r.desired(""); now.Bundle != first.Bundle {
		t.Errorf("bundle %s is published, %s before the change", now.Bundle.Short(), first.Bundle.Short())
	}
	if _, text := r.scrape(r.reader("prometheus-held")); !strings.Contains(text, `wmco_input_warnings{reason="NodeImageUnreachable"} 1`) {
		t.Error("no metric has it")
	}

	if err := r.Delete(t.Context(), never()); err != nil {
		t.Fatal(err)
	}
	r.condition(status.InputsConfirmed, metav1.ConditionTrue)
	if err := r.Create(t.Context(), never()); err != nil {
		t.Fatal(err)
	}
	r.condition(status.InputsConfirmed, metav1.ConditionFalse)
	r.annotate(published.ConfirmFindingAnnotation, reason.NodeImageUnreachable)
	second := r.desired(first.Bundle)
	if !slices.Contains(r.registries(second), "mcr.microsoft.com") || !slices.Contains(second.Inputs, published.InputUnreachableImages) {
		t.Errorf("of %v: %q", second.Inputs, r.registries(second))
	}
	r.condition(status.InputsConfirmed, metav1.ConditionTrue)
	// A confirmation is for one change.
	if err := r.Delete(t.Context(), never()); err != nil {
		t.Fatal(err)
	}
	if third := r.desired(second.Bundle); third.Bundle != first.Bundle || slices.Contains(third.Inputs, published.InputUnreachableImages) {
		t.Errorf("bundle %s of %v, %s before the change", third.Bundle.Short(), third.Inputs, first.Bundle.Short())
	}
	if err := r.eventually("the confirmation to be used up", func() bool {
		return r.node().Annotations[published.ConfirmFindingAnnotation] == ""
	}); err != nil {
		t.Error(err)
	}
}
