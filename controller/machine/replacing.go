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

// replacementsInARow is how many Machines of a MachineSet are replaced before a person has to look.
const replacementsInARow = 2

// whyDeleting is why a Machine is not deleted once more.
const whyDeleting = "it is being deleted already"

// limits are those of one MachineSet.
type limits struct {
	// inARow is how many of its Machines may be replaced before one has joined.
	inARow int
	// nodes is true for a Machine whose host is a node: it is replaced only while all others of the MachineSet have
	// Nodes. Otherwise it has none itself.
	nodes bool
}

// replaceMachine deletes a Machine whose host refuses the login for good, so that its MachineSet creates another one
// with the current user data.
func (m *Machines) replaceMachine(ctx context.Context, machine *machinev1beta1.Machine,
	p configure.Progress) configure.Progress {
	m.replacing.Lock()
	defer m.replacing.Unlock()
	d, why, err := m.planDeletion(ctx, machine.UID, limits{inARow: replacementsInARow})
	if err == nil && why == "" {
		err = m.deletePlanned(ctx, d, "its host refuses the login")
	}
	switch {
	case err != nil:
		p.Message += "; and replacing the Machine: " + err.Error()
		return p
	case why != "":
		p.Message += "; it is not replaced: " + why
		m.Events.Eventf(machineReference(machine), nil, corev1.EventTypeWarning, eventMachineDeletionLimited,
			actionReplace, "%s", p.DisplayText())
		p.Again = 10 * configure.AgainLater
		return p
	}
	return configure.Progress{State: configure.StateJoining, Reason: p.Reason, Message: "the Machine is replaced"}
}

// ReplaceNode deletes the Machine with this UID, whose host is a node, so that its MachineSet creates another one: one
// at a time of a MachineSet, and the next one when another one has joined. It returns why it does not, empty if it
// does.
func (m *Machines) ReplaceNode(ctx context.Context, uid types.UID, because string) (why string, err error) {
	m.replacing.Lock()
	defer m.replacing.Unlock()
	d, why, err := m.planDeletion(ctx, uid, limits{inARow: 1, nodes: true})
	switch {
	case err != nil:
		return "", err
	case why == "":
		return "", m.deletePlanned(ctx, d, because)
	case d.machine != nil:
		m.Events.Eventf(machineReference(d.machine), nil, corev1.EventTypeWarning, eventMachineDeletionLimited,
			actionReplace, "%s", configure.Progress{Message: because + "; it is not replaced: " + why}.DisplayText())
	}
	return why, nil
}

// deletion is the object to delete in order to replace a Machine.
type deletion struct {
	// machine is the Machine as the API server has it; object is the one to delete, which may be another one
	// (findAuthority).
	machine *machinev1beta1.Machine
	object  client.Object
	// set is the name of the MachineSet that creates another one, and count how many of its Machines were replaced.
	set   string
	count int
}

// listMachines returns the Machines of Windows hosts as the API server has them.
func (m *Machines) listMachines(ctx context.Context) ([]machinev1beta1.Machine, error) {
	var list machinev1beta1.MachineList
	err := m.Live.List(ctx, &list, client.InNamespace(base.MachinesNamespace),
		client.MatchingLabels{labelMachineOS: valueWindows})
	return list.Items, err
}

// deletePlanned deletes the object, if it has not changed since it was read.
func (m *Machines) deletePlanned(ctx context.Context, d deletion, because string) error {
	uid, version := d.object.GetUID(), d.object.GetResourceVersion()
	// Noted before it is done: one too few in the count never stops.
	if err := m.Replacements.noteReplacement(ctx, d.set, replaced{d.count + 1, uid}); err != nil {
		return fmt.Errorf("noting that a Machine is replaced: %w", err)
	}
	if err := m.Client.Delete(ctx, d.object,
		client.Preconditions{UID: &uid, ResourceVersion: &version}); client.IgnoreNotFound(err) != nil {
		m.Events.Eventf(machineReference(d.machine), nil, corev1.EventTypeWarning, eventMachineDeletionFailed,
			actionReplace, "%s", configure.Progress{Message: m.explainRefusal(d.machine, err)}.DisplayText())
		return fmt.Errorf("deleting Machine %s: %w", d.machine.Name, err)
	}
	m.Log.Info("a Machine is replaced", "machine", d.machine.Name, "machineSet", d.set, "namespace",
		d.object.GetNamespace(), "because", because)
	m.Events.Eventf(machineReference(d.machine), nil, corev1.EventTypeNormal, eventMachineDeleted, actionReplace, "%s",
		because+"; MachineSet "+d.set+" creates another one")
	return nil
}

// planDeletion returns the object to delete to replace the Machine with this UID, or why it is not replaced. The API
// server decides, and no cache.
func (m *Machines) planDeletion(ctx context.Context, uid types.UID, l limits) (d deletion, why string, err error) {
	list, err := m.listMachines(ctx)
	if err != nil {
		return deletion{}, "", err
	}
	i := slices.IndexFunc(list, func(live machinev1beta1.Machine) bool { return live.UID == uid })
	if i < 0 || list[i].DeletionTimestamp != nil {
		return deletion{}, whyDeleting, nil
	}
	d.machine = &list[i]
	set := slices.IndexFunc(d.machine.OwnerReferences, isMachineSet)
	if set < 0 {
		return d, "no MachineSet owns it, so nothing would create another one", nil
	}
	owner := d.machine.OwnerReferences[set]
	d.set = owner.Name
	if why := whyNotNow(d.machine, list, owner.UID, l); why != "" {
		return d, why, nil
	}
	if d.object, why, err = m.findAuthority(ctx, d.machine); err != nil || why != "" {
		return d, why, err
	}
	noted, err := m.Replacements.countReplacements(ctx, owner.Name)
	if err != nil {
		return d, "", err
	}
	if d.count = noted.count; noted.isUndone(d.object, list) {
		d.count--
	}
	if d.count >= l.inARow {
		return d, describeCount(owner.Name, d.count, l), nil
	}
	return d, "", nil
}

// whyNotNow returns what the Machines of a MachineSet say against replacing one of them now, empty if they do not.
func whyNotNow(machine *machinev1beta1.Machine, list []machinev1beta1.Machine, set types.UID, l limits) string {
	if other, ok := deletedSibling(metadataOf(list), set, machine.Name); ok {
		return describeSibling(other)
	}
	if machine.Labels[configure.LabelIgnore] == configure.ValueTrue {
		return "it has the label " + configure.LabelIgnore
	}
	if !l.nodes {
		if machine.Status.NodeRef != nil {
			return "it has a Node since"
		}
		return ""
	}
	for _, other := range list {
		if other.Name != machine.Name && other.Status.NodeRef == nil && isOwnedBy(&other, set) {
			return "Machine " + other.Name + " of the same MachineSet has no Node, and one at a time is replaced"
		}
	}
	return ""
}

func describeCount(set string, count int, l limits) string {
	if l.nodes {
		return fmt.Sprintf("a Machine of MachineSet %s was replaced, and none has joined since; fix: see why none "+
			"joins; if none is to join, remove the key %s from ConfigMap %s", set, set, replacementsName)
	}
	return fmt.Sprintf("%d Machines in a row of MachineSet %s refused the login; fix: check that Secret "+
		"windows-user-data has the key of Secret cloud-private-key, and check the image; then delete the Machine "+
		"and remove the key %s from ConfigMap %s", count, set, set, replacementsName)
}

// deletedSibling returns the name of another Machine of a MachineSet that is being deleted; false if there is none.
func deletedSibling(list []metav1.Object, set types.UID, machine string) (string, bool) {
	for _, other := range list {
		if isOwnedBy(other, set) && other.GetName() != machine && other.GetDeletionTimestamp() != nil {
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

func isOwnedBy(o metav1.Object, set types.UID) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return owner.UID == set
	})
}

func describeSibling(name string) string {
	return "Machine " + name + " of the same MachineSet is being deleted, and one at a time is replaced"
}

func isMachineSet(o metav1.OwnerReference) bool {
	return o.Kind == kindMachineSet && o.Controller != nil && *o.Controller
}
