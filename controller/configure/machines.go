package configure

import (
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"wmco/render/machines"
)

// ClusterAPINamespace is the namespace of the Cluster API, where the cluster has one.
const ClusterAPINamespace = machines.ClusterAPINamespace

// FixByDeletion is the fix to delete a Machine, so that its MachineSet creates another one. For a Machine that the Cluster
// API owns it names that one, because the Machine of the Machine API is a copy.
func FixByDeletion(m *machinev1beta1.Machine) string {
	if m.Status.AuthoritativeAPI == machinev1beta1.MachineAuthorityClusterAPI {
		return fmt.Sprintf("delete the Machine in the Cluster API (oc delete machines.cluster.x-k8s.io %s -n %s); "+
			"its MachineSet creates another one", m.Name, ClusterAPINamespace)
	}
	return "delete the Machine; its MachineSet creates another one"
}
