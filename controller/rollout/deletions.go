package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/inputs/deletions"
	"wmco/controller/inputs/desired"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/render"
)

// findDeleted compares the inputs with the published bundles of the Windows nodes.
func (r *renderer) findDeleted(hosts *desired.Hosts, nodes []windowsnode.Node) deletions.Found {
	found := deletions.CompareInputs(hosts, nodes, r.publishedInputs)
	for _, input := range found.WaitingInputs() {
		r.log.Info("input deleted; waiting for confirmation before rolling it out", "input", input, "nodes",
			len(found.Waiting[input]))
	}
	if text := found.ExplainHeld(); text != "" {
		r.log.Info("a change of the inputs would stop all pods; waiting for confirmation before rolling it out",
			"message", text)
	}
	return found
}

// publishedInputs returns the guarded inputs of the bundle that is published on a Node.
func (r *renderer) publishedInputs(n windowsnode.Node) []published.Input {
	return deletions.InputsOfPublished(r.readDesired, n)
}

// asJoinedHosts returns the hosts as their bundles are rendered.
func asJoinedHosts(found deletions.Found, hosts []render.Node) []render.Node {
	for i, h := range hosts {
		hosts[i] = found.AsJoinedHost(h)
	}
	return hosts
}

// inputsPresent names the deleted inputs.
func inputsPresent(r rendering) metav1.Condition {
	c := metav1.Condition{Type: status.InputsPresent, Status: metav1.ConditionTrue, Reason: status.ReasonPresent,
		Message: "all inputs are present"}
	if len(r.blocking) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, status.ReasonInputsRefused, inputsRefused
		return c
	}
	var texts []string
	for _, input := range r.deleted.WaitingInputs() {
		texts = append(texts, r.deleted.ExplainDeletion(input))
	}
	if len(texts) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, status.ReasonDeleted,
			published.Shorten(strings.Join(texts, "; "))
	}
	return c
}

// inputsConfirmed names the held change of the inputs.
func inputsConfirmed(r rendering) metav1.Condition {
	c := metav1.Condition{Type: status.InputsConfirmed, Status: metav1.ConditionTrue, Reason: status.ReasonNothingHeld,
		Message: "no change waits for a confirmation"}
	if len(r.blocking) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, status.ReasonInputsRefused, inputsRefused
		return c
	}
	if held := slices.Sorted(maps.Keys(r.deleted.Held)); len(held) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, string(held[0]),
			published.Shorten(r.deleted.ExplainHeld())
	}
	return c
}

// inputsClean lists the findings about the inputs that are warnings. Nothing waits for that.
func inputsClean(r rendering) metav1.Condition {
	c := metav1.Condition{Type: status.InputsClean, Status: metav1.ConditionTrue, Reason: status.ReasonNoWarnings,
		Message: "no warnings, except accepted ones"}
	if len(r.warnings) == 0 {
		return c
	}
	const most = 3
	var texts []string
	for _, f := range r.warnings {
		texts = append(texts, findingSentence(f))
	}
	c.Status, c.Reason = metav1.ConditionFalse, status.ReasonWarned
	c.Message = published.Shorten(bundle.JoinFirst(texts, most, "; ", func(left int) string {
		return countMoreText(left, "warning")
	}))
	return c
}

// warningsOf returns the findings that are warnings and not accepted, each once.
func warningsOf(findings bundle.Findings) bundle.Findings {
	var list bundle.Findings
	for _, f := range findings.Open() {
		if f.Severity == bundle.SeverityWarning && !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	return list
}

// removeConfirmations returns what removes confirmations from Nodes, as they were read: one that is given since stays.
// It returns the Nodes for which that is retried.
func removeConfirmations(c client.Client, try tryFunc, log logr.Logger) func(context.Context,
	[]windowsnode.Node) []windowsnode.Node {
	return func(ctx context.Context, nodes []windowsnode.Node) (left []windowsnode.Node) {
		for _, n := range nodes {
			if err := try(ctx, "confirmation of Node "+n.Name, func(ctx context.Context) error {
				return removeConfirmation(ctx, c, n, log)
			}); err != nil {
				left = append(left, n)
			}
		}
		return left
	}
}

func removeConfirmation(ctx context.Context, c client.Client, n windowsnode.Node, log logr.Logger) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": n.ResourceVersion, "annotations": map[string]any{published.ConfirmAnnotation: nil,
			published.ConfirmFindingAnnotation: nil},
	}})
	if err != nil {
		return err
	}
	err = c.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}},
		client.RawPatch(types.MergePatchType, patch))
	switch {
	case apierrors.IsConflict(err): // the next rendering looks at it again
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("removing the confirmation from Node %s: %w", n.Name, err)
	default:
		log.Info("a confirmation that nothing waits for is removed", "node", n.Name, "annotations",
			[]string{published.ConfirmAnnotation, published.ConfirmFindingAnnotation})
	}
	return nil
}
