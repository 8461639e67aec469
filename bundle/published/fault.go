package published

import "slices"

// Fault is the kind of failure that keeps a node from its published bundle. It is about StateFailed and
// StateRolledBack.
type Fault string

const (
	// FaultAPI means that the API server cannot be reached, or does not answer.
	FaultAPI Fault = "api"
	// FaultDisk means that drive C: of the host is full. It is retried when there is room, also where something was
	// rolled back.
	FaultDisk Fault = "disk"
	// FaultLayer means that a layer is missing, or does not have its digest. The operator publishes it again.
	FaultLayer Fault = "layer"
	// FaultInput means that the host applied the bundle and does not work with it: the inputs are wrong.
	FaultInput Fault = "input"
	// FaultHost means that the host refused a change, such as that of a file which another program has locked.
	FaultHost Fault = "host"
	// FaultAgent means that the node agent is too old for the published bundle. Older operators, which do not know this
	// value, treat it as no fault.
	FaultAgent Fault = "agent"
)

// Faults returns every fault.
func Faults() []Fault {
	return []Fault{FaultAPI, FaultDisk, FaultLayer, FaultInput, FaultHost, FaultAgent}
}

// Known returns the fault, or none for an unknown one: nodes may report anything.
func (f Fault) Known() Fault {
	if slices.Contains(Faults(), f) {
		return f
	}
	return ""
}

// WaitsForRoom reports whether the agent begins the bundle when the disk of its host has room.
func (r Report) WaitsForRoom() bool { return r.State == StateFailed && r.Fault.Known() == FaultDisk }

// Heals reports whether what failed is retried and may need no person: the operator publishes layers again, API
// servers come back, and what keeps a host from a change, such as a scanner that has a file open, mostly ends. What was
// rolled back is not retried.
func (r Report) Heals() bool {
	return r.State == StateFailed && slices.Contains([]Fault{FaultAPI, FaultDisk, FaultLayer, FaultHost}, r.Fault.Known())
}

// BlamesHost reports whether the host alone is the cause: then the failure does not count against the bundle.
func (r Report) BlamesHost() bool {
	return (r.State == StateFailed || r.State == StateRolledBack) && r.Fault.Known() == FaultHost
}

// BlamesInput reports whether the inputs may be why a bundle does not work on a node. Older agents do not say.
func (r Report) BlamesInput() bool {
	switch r.Fault.Known() {
	case FaultInput:
		return r.State == StateFailed || r.State == StateRolledBack
	case "", FaultAPI: // what was rolled back may be what kept the host from the API server
		return r.State == StateRolledBack
	case FaultDisk, FaultLayer, FaultHost, FaultAgent:
	}
	return false
}

// RetryCommand returns the command by which a person asks a node for another try.
func RetryCommand(node string) string { return "wmco retry " + node }

// Fix returns what to do about a node that reports StateFailed or StateRolledBack; empty for other states.
func (r Report) Fix(node string) string {
	retry := RetryCommand(node)
	switch {
	case r.State == StateRolledBack:
		return fixRolledBack(r.Fault.Known(), retry)
	case r.State != StateFailed:
		return ""
	case r.Refused != "":
		return "correct the cause in the message; the operator writes the annotation again"
	}
	switch r.Fault.Known() {
	case FaultAPI:
		return "check the network, DNS, proxy and clock of the host; the node agent retries"
	case FaultDisk:
		return "free space on drive C: of the host, for example unused images and logs; the node agent retries within a minute"
	case FaultLayer:
		return "none; the operator publishes the layer again. If it does not, check that the operator runs, and who writes Secrets in its namespace"
	case FaultInput:
		return "correct the inputs that the message names"
	case FaultHost:
		return "repair the host; the node agent retries. To retry at once: " + retry
	case FaultAgent:
		return "install the operator release in between, or copy a newer node agent with wmco apply --host; then: " + retry
	}
	return "none; the node agent retries, and its log has the details"
}

func fixRolledBack(f Fault, retry string) string {
	switch f {
	case FaultAPI:
		return "if the API server or the network was down: " + retry +
			". Otherwise correct the inputs: the change may have cut off the host"
	case FaultHost:
		return "repair the host, then: " + retry
	case FaultDisk, FaultLayer, FaultAgent:
		return "correct the cause in the message, then: " + retry
	case FaultInput:
	}
	return "correct the inputs that caused this; the node applies the corrected bundle at once. To try the same bundle again: " + retry
}
