package machine

import (
	"context"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/base"
	"wmco/controller/configure"
)

// A Machine is deleted so that its MachineSet creates another one, and for nothing else:
//
//	the host refuses the login for good --> limits of the MachineSet --> the object that counts (authority.go) --> noted, deleted, told

const (
	actionReplace  = "Replace"
	labelMachineOS = "machine.openshift.io/os-id"
	kindMachineSet = "MachineSet"
	valueWindows   = "Windows"
)

// replaceMachine deletes a Machine whose host refuses the login for good, so that its MachineSet creates another one with the current user data.
func (m *Machines) replaceMachine(ctx context.Context, machine *machinev1beta1.Machine, p configure.Progress) configure.Progress {
	m.replacing.Lock()
	defer m.replacing.Unlock()
	d, why, err := m.planDeletion(ctx, machine)
	switch {
	case err != nil:
		p.Message += "; and looking whether it may be replaced: " + err.Error()
		return p
	case why != "":
		p.Message += "; it is not replaced: " + why
		m.Events.Eventf(machineReference(machine), nil, corev1.EventTypeWarning, eventMachineDeletionLimited, actionReplace, "%s", p.DisplayText())
		p.Again = 10 * configure.AgainLater
		return p
	}
	// Noted before it is done: one too many in the count stops too early, one too few never stops.
	if err := m.Replacements.addReplacement(ctx, d.set); err != nil {
		p.Message += "; and noting that it is replaced: " + err.Error()
		return p
	}
	uid, version := d.object.GetUID(), d.object.GetResourceVersion()
	if err := m.Client.Delete(ctx, d.object, client.Preconditions{UID: &uid, ResourceVersion: &version}); client.IgnoreNotFound(err) != nil {
		m.Events.Eventf(machineReference(machine), nil, corev1.EventTypeWarning, eventMachineDeletionFailed, actionReplace, "%s", m.explainRefusal(machine, err))
		return p
	}
	m.Log.Info("a Machine is replaced: its host refuses the login", "machine", machine.Name, "machineSet", d.set, "namespace", d.object.GetNamespace())
	m.Events.Eventf(machineReference(machine), nil, corev1.EventTypeNormal, eventMachineDeleted, actionReplace, "%s", "its host refuses the login; MachineSet "+d.set+" creates another one")
	return configure.Progress{State: configure.StateJoining, Reason: p.Reason, Message: "the Machine is replaced"}
}

// replacementsInARow is how many Machines of a MachineSet are replaced before somebody has to look.
const replacementsInARow = 2

// deletion is what is deleted to replace a Machine: the object that counts, as it was read last, and the MachineSet that creates another one.
type deletion struct {
	set    string
	object client.Object
}

// planDeletion returns what is deleted to replace a Machine, or why it is not replaced.
func (m *Machines) planDeletion(ctx context.Context, machine *machinev1beta1.Machine) (d deletion, why string, err error) {
	i := slices.IndexFunc(machine.OwnerReferences, isMachineSet)
	if i < 0 {
		return deletion{}, "no MachineSet owns it, so nothing would create another one", nil
	}
	owner := machine.OwnerReferences[i]
	var list machinev1beta1.MachineList
	if err := m.Live.List(ctx, &list, client.InNamespace(base.MachinesNamespace), client.MatchingLabels{labelMachineOS: valueWindows}); err != nil {
		return deletion{}, "", err
	}
	if other, ok := deletedSibling(metadataOf(list.Items), owner.UID, machine.Name); ok {
		return deletion{}, describeSibling(other), nil
	}
	count, err := m.Replacements.countReplacements(ctx, owner.Name)
	if err != nil {
		return deletion{}, "", err
	}
	if count >= replacementsInARow {
		return deletion{}, fmt.Sprintf("%d Machines in a row of MachineSet %s refused the login; fix: check that Secret windows-user-data has the key of Secret cloud-private-key, and check the image; then delete the Machine and remove the key %s from ConfigMap %s", count, owner.Name, owner.Name, replacementsName), nil
	}
	// What the cache has may be older than what the API server has. The latter says which API the Machine belongs to.
	i = slices.IndexFunc(list.Items, func(live machinev1beta1.Machine) bool { return live.UID == machine.UID })
	if i < 0 || list.Items[i].DeletionTimestamp != nil {
		return deletion{}, "it is being deleted already", nil
	}
	object, why, err := m.findAuthority(ctx, &list.Items[i])
	return deletion{owner.Name, object}, why, err
}

// deletedSibling returns the name of another Machine of a MachineSet that is being deleted; false if there is none.
func deletedSibling(list []metav1.Object, set types.UID, machine string) (string, bool) {
	for _, other := range list {
		mine := slices.ContainsFunc(other.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == set })
		if mine && other.GetName() != machine && other.GetDeletionTimestamp() != nil {
			return other.GetName(), true
		}
	}
	return "", false
}

// metadataOf returns the metadata of the items of a list.
func metadataOf[T any, P interface {
	*T
	metav1.Object
}](items []T) []metav1.Object {
	list := make([]metav1.Object, len(items))
	for i := range items {
		list[i] = P(&items[i])
	}
	return list
}

func describeSibling(name string) string {
	return "Machine " + name + " of the same MachineSet is being deleted, and one at a time is replaced"
}

func isMachineSet(o metav1.OwnerReference) bool {
	return o.Kind == kindMachineSet && o.Controller != nil && *o.Controller
}
