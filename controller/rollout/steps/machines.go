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

	"wmco/controller/base"
	"wmco/controller/windowsnode"
)

// EventHealthCheckShort is the reason of an Event that warns of a MachineHealthCheck that does not wait for a boot.
const EventHealthCheckShort = "HealthCheckTimeoutShort"

// machines reads the Machines of nodes.
type machines struct {
	// cached is a cache of Machines, live asks the API server.
	cached, live client.Reader
}

// shortHealthChecks names the MachineHealthChecks that may take the machine of a node for dead during an update with a boot,
// and delete it: their timeout is shorter than such an update has taken in this cluster.
func (m machines) shortHealthChecks(ctx context.Context, node windowsnode.Node, took time.Duration) ([]string, error) {
	machine, ok, err := m.machineOf(ctx, node)
	if err != nil || !ok {
		return nil, err
	}
	var list machinev1beta1.MachineHealthCheckList
	switch err := m.live.List(ctx, &list, client.InNamespace(machine.Namespace)); {
	case meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing MachineHealthChecks: %w", err)
	}
	var short []string
	for _, check := range list.Items {
		if limit, ok := timesOutBefore(check, machine, took); ok {
			short = append(short, fmt.Sprintf(
				"MachineHealthCheck %s deletes a Machine whose node is not Ready for %s, and an update with a reboot "+
					"takes %s here (fix: raise the timeout, or pause the check with the annotation cluster.x-k8s.io/paused)",
				check.Name, limit, took.Round(time.Second)))
		}
	}
	return short, nil
}

// timesOutBefore reports whether a check is for the Machine and waits for a shorter time; limit is how long.
func timesOutBefore(check machinev1beta1.MachineHealthCheck, m machinev1beta1.Machine,
	took time.Duration) (limit time.Duration, ok bool) {
	selector, err := metav1.LabelSelectorAsSelector(&check.Spec.Selector)
	if err != nil || !selector.Matches(labels.Set(m.Labels)) {
		return 0, false
	}
	for _, c := range check.Spec.UnhealthyConditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue && c.Timeout.Duration < took &&
			(!ok || c.Timeout.Duration < limit) {
			limit, ok = c.Timeout.Duration, true
		}
	}
	return limit, ok
}

// machineOf returns the Machine of a Node; false if there is none.
func (m machines) machineOf(ctx context.Context, node windowsnode.Node) (machinev1beta1.Machine, bool, error) {
	list, err := m.listMachines(ctx)
	if err != nil {
		return machinev1beta1.Machine{}, false, err
	}
	for _, u := range list {
		machine, err := decodeMachine(u)
		if err != nil {
			return machine, false, err
		}
		if isMachineOfNode(machine, node) {
			return machine, true, nil
		}
	}
	return machinev1beta1.Machine{}, false, nil
}

// listMachines returns the Windows Machines of the cache. A cluster without the Machine API has none.
func (m machines) listMachines(ctx context.Context) ([]unstructured.Unstructured, error) {
	list := base.NewList(base.MachineKind())
	err := m.cached.List(ctx, list, client.UnsafeDisableDeepCopy)
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

// deletedMachines returns the Machines that are about to go.
func (m machines) deletedMachines(ctx context.Context) ([]machinev1beta1.Machine, error) {
	list, err := m.listMachines(ctx)
	if err != nil {
		return nil, err
	}
	var deleted []machinev1beta1.Machine
	for _, u := range list {
		if u.GetDeletionTimestamp() == nil {
			continue
		}
		machine, err := decodeMachine(u)
		if err != nil {
			return nil, err
		}
		deleted = append(deleted, machine)
	}
	return deleted, nil
}

// isMachineOfNode reports whether a Machine is that of a Node: machine-api names the Node, or they have an address in
// common.
func isMachineOfNode(m machinev1beta1.Machine, node windowsnode.Node) bool {
	if m.Status.NodeRef != nil {
		return m.Status.NodeRef.Name == node.Name
	}
	return slices.ContainsFunc(m.Status.Addresses, func(a corev1.NodeAddress) bool {
		return a.Type == corev1.NodeInternalIP && slices.Contains(node.Status.Addresses, a)
	})
}
