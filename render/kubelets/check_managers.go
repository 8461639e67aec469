package kubelets

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
)

// checkManagers is about processors and memory of containers, which kubelets on Windows manage if a feature gate is on
// (pkg/kubelet/cm/container_manager_windows.go).
func (c *check) checkManagers() {
	k := c.config
	if len(k.TopologyManagerPolicyOptions) > 0 {
		c.requireGate("topologyManagerPolicyOptions", "TopologyManagerPolicyOptions")
	}
	if !c.isOn("WindowsCPUAndMemoryAffinity") {
		return
	}
	c.requireChoice("cpuManagerPolicy", k.CPUManagerPolicy, "none static")
	c.requireChoice("memoryManagerPolicy", k.MemoryManagerPolicy, "None BestEffort")
	if k.TopologyManagerPolicy != "" && k.TopologyManagerPolicy != "none" {
		c.checkTopologyOptions()
	}
	if k.CPUManagerPolicy == "static" {
		c.checkStaticPolicy()
	} else if len(k.CPUManagerPolicyOptions) > 0 {
		c.addConflict("cpuManagerPolicyOptions", "cpuManagerPolicy", "cpuManagerPolicyOptions needs cpuManagerPolicy: static")
	}
}

// checkTopologyOptions applies the rules of pkg/kubelet/cm/topologymanager (NewPolicyOptions).
func (c *check) checkTopologyOptions() {
	const field, leastNodes = "topologyManagerPolicyOptions.", 8
	for _, name := range slices.Sorted(maps.Keys(c.config.TopologyManagerPolicyOptions)) {
		value := c.config.TopologyManagerPolicyOptions[name]
		switch name {
		case "prefer-closest-numa-nodes":
			if _, err := strconv.ParseBool(value); err != nil {
				c.addProblem(field+name, "%q is neither true nor false", value)
			}
		case "max-allowable-numa-nodes":
			if n, err := strconv.Atoi(value); err != nil || n < leastNodes {
				c.addProblem(field+name, "%q is not a number from %d", value, leastNodes)
			}
		default:
			c.addProblem(field+name, "is not an option of the topology manager")
		}
	}
}

// checkStaticPolicy applies the rules of the static policy that do not depend on the host (pkg/kubelet/cm/cpumanager,
// NewManager and NewStaticPolicyOptions).
func (c *check) checkStaticPolicy() {
	known := []string{
		"full-pcpus-only", "distribute-cpus-across-numa", "align-by-socket", "distribute-cpus-across-cores",
		"strict-cpu-reservation", "prefer-align-cpus-by-uncorecache",
	}
	for _, name := range slices.Sorted(maps.Keys(c.config.CPUManagerPolicyOptions)) {
		if _, err := strconv.ParseBool(c.config.CPUManagerPolicyOptions[name]); err != nil || !slices.Contains(known, name) {
			c.addProblem("cpuManagerPolicyOptions."+name, "is not an option of the static policy with the value true or false")
		}
	}
	if isZero(c.config.SystemReserved["cpu"]) && isZero(c.config.KubeReserved["cpu"]) {
		c.addConflict(
			"cpuManagerPolicy", "systemReserved",
			"cpuManagerPolicy: static needs a cpu above zero in systemReserved or kubeReserved",
		)
	}
}

func isZero(quantity string) bool {
	q, err := resource.ParseQuantity(quantity)
	return err != nil || q.IsZero()
}
