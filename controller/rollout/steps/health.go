package steps

import (
	"context"
	"fmt"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
)

// warnShortHealthCheck says before a boot which MachineHealthCheck may take the machine for dead during the turn, and delete it: its timeout is shorter than such a turn
// has taken in this cluster.
func (e *Executor) warnShortHealthCheck(ctx context.Context, v view, node windowsnode.Node) error {
	i := slices.IndexFunc(v.Nodes, func(n plan.Node) bool { return n.Name == node.Name })
	took, ok := plan.LearnDurations(v.Fleet).MedianOf(v.Nodes[i].Group, bundle.ImpactReboot)
	if !ok {
		return nil
	}
	machine, ok, err := e.machineOf(ctx, node)
	if err != nil || !ok {
		return err
	}
	var list machinev1beta1.MachineHealthCheckList
	switch err := e.Live.List(ctx, &list, client.InNamespace(machine.Namespace)); {
	case meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return fmt.Errorf("listing MachineHealthChecks: %w", err)
	}
	for _, check := range list.Items {
		if limit, ok := timesOutBefore(check, machine, took); ok {
			e.Events.Eventf(node.Reference(), nil, corev1.EventTypeWarning, EventHealthCheckShort, "Turn "+v.Nodes[i].Wanted.Short(), "%s", published.Shorten(fmt.Sprintf(
				"MachineHealthCheck %s deletes a Machine whose node is not Ready for %s, and a turn with a boot takes %s here (fix: raise the timeout, or pause the check with the annotation cluster.x-k8s.io/paused)",
				check.Name, limit, took.Round(time.Second))))
		}
	}
	return nil
}

// timesOutBefore reports whether a check is for the Machine and waits for a shorter time; limit is how long.
func timesOutBefore(check machinev1beta1.MachineHealthCheck, m machinev1beta1.Machine, took time.Duration) (limit time.Duration, ok bool) {
	selector, err := metav1.LabelSelectorAsSelector(&check.Spec.Selector)
	if err != nil || !selector.Matches(labels.Set(m.Labels)) {
		return 0, false
	}
	for _, c := range check.Spec.UnhealthyConditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue && c.Timeout.Duration < took && (!ok || c.Timeout.Duration < limit) {
			limit, ok = c.Timeout.Duration, true
		}
	}
	return limit, ok
}

// machineOf returns the Machine of a Node; false if there is none.
func (e *Executor) machineOf(ctx context.Context, node windowsnode.Node) (machinev1beta1.Machine, bool, error) {
	list, err := e.listMachines(ctx)
	if err != nil {
		return machinev1beta1.Machine{}, false, err
	}
	for _, u := range list {
		m, err := decodeMachine(u)
		if err != nil {
			return m, false, err
		}
		if isMachineOfNode(m, node) {
			return m, true, nil
		}
	}
	return machinev1beta1.Machine{}, false, nil
}

// listMachines returns the Windows Machines of the cache. A cluster without the Machine API has none.
func (e *Executor) listMachines(ctx context.Context) ([]unstructured.Unstructured, error) {
	list := base.NewList(base.MachineKind())
	err := e.Nodes.List(ctx, list, client.UnsafeDisableDeepCopy)
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsForbidden(err) { // their nodes get nothing new then
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	return list.Items, nil
}

func decodeMachine(u unstructured.Unstructured) (machinev1beta1.Machine, error) {
	var m machinev1beta1.Machine
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &m); err != nil {
		return m, fmt.Errorf("reading Machine %s: %w", u.GetName(), err)
	}
	return m, nil
}
