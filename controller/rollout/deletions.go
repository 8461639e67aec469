package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/published"
	"wmco/controller/inputs/deletions"
	"wmco/controller/inputs/desired"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/render"
)

// findDeleted compares the inputs with what is published on the Windows nodes.
func (r *renderer) findDeleted(hosts *desired.Hosts, nodes []windowsnode.Node) deletions.Found {
	found := deletions.Find(hosts, nodes, r.madeFrom)
	for _, input := range found.Inputs() {
		r.log.Info("input deleted; waiting for confirmation before rolling it out", "input", input, "nodes", len(found.Waiting[input]))
	}
	return found
}

// madeFrom returns the guarded inputs of the bundle that is published on a Node. What is not signed counts while the agent is of an older
// operator: a deletion at that time is guarded too, and inputs only keep a node from getting another bundle.
func (r *renderer) madeFrom(n windowsnode.Node) []published.Input {
	d, err := r.told(n)
	if err != nil && n.ReportError == nil && !n.Report.Has(published.FeatureSigned) {
		d, err = n.Desired, n.DesiredError
	}
	if err != nil {
		return nil
	}
	return d.Inputs
}

// asJoined returns the hosts as their bundles are rendered.
func asJoined(found deletions.Found, hosts []render.Node) []render.Node {
	for i, h := range hosts {
		hosts[i] = found.AsJoined(h)
	}
	return hosts
}

// inputsPresent says which inputs were deleted.
func inputsPresent(r rendering) metav1.Condition {
	c := metav1.Condition{Type: status.InputsPresent, Status: metav1.ConditionTrue, Reason: status.ReasonPresent, Message: "all inputs are present"}
	if len(r.blocking) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, status.ReasonInputsRefused, "invalid inputs: keeping the published bundles"
		return c
	}
	var texts []string
	for _, input := range r.deleted.Inputs() {
		texts = append(texts, r.deleted.Explain(input))
	}
	if len(texts) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, status.ReasonDeleted, published.Shorten(strings.Join(texts, "; "))
	}
	return c
}

// forgetConfirmations returns what removes confirmations from Nodes, as they were read: one that is given meanwhile stays.
func forgetConfirmations(c client.Client, log logr.Logger) func(context.Context, []windowsnode.Node) error {
	return func(ctx context.Context, nodes []windowsnode.Node) error {
		for _, n := range nodes {
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
				"resourceVersion": n.ResourceVersion, "annotations": map[string]any{published.ConfirmAnnotation: nil},
			}})
			if err != nil {
				return err
			}
			err = c.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}, client.RawPatch(types.MergePatchType, patch))
			switch {
			case apierrors.IsConflict(err): // the next rendering looks at it again
			case client.IgnoreNotFound(err) != nil:
				return fmt.Errorf("removing the confirmation from Node %s: %w", n.Name, err)
			default:
				log.Info("a confirmation that nothing waits for is removed", "node", n.Name, "annotation", published.ConfirmAnnotation)
			}
		}
		return nil
	}
}
