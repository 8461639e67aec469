package plan

import (
	"wmco/bundle"
)

// Action is what a step does.
type Action string

const (
	// ActionPublish publishes a bundle and permits an impact for it.
	ActionPublish Action = "publish"
	// ActionPermit permits another impact for the bundle that is published.
	ActionPermit Action = "permit"
	// ActionReserve reserves a slot among the unavailable nodes, cordons and marks the node, in one patch. Nothing else may follow before
	// the reservation is confirmed.
	ActionReserve Action = "take"
	// ActionConfirmReservation notes that the reservation fits.
	ActionConfirmReservation Action = "hold"
	// ActionCancelReservation takes a reservation back that does not fit, or is not needed any more. No pod was evicted for it.
	ActionCancelReservation Action = "withdraw"
	// ActionDrain cordons the node if it is not, and evicts its pods. It is asked for until Drained is true.
	ActionDrain Action = "drain"
	// ActionRelease ends the turn: uncordons what the operator cordoned, and takes disruptive permissions back.
	ActionRelease Action = "release"
	// ActionConfirm notes that a canary has settled.
	ActionConfirm Action = "confirm"
	// ActionNote writes how long a turn has taken, for an operator that is started later, or that its time begins again.
	ActionNote Action = "note"
)

// Switch is what happens to a field of a Node.
type Switch string

const (
	// SwitchKeep leaves it.
	SwitchKeep Switch = ""
	// SwitchOn sets it, and the operator's mark.
	SwitchOn Switch = "on"
	// SwitchOff removes it, and the operator's mark.
	SwitchOff Switch = "off"
)

// Step is what is to be done with one node: one patch of the Node, and for a drain the evictions after it.
type Step struct {
	Node   string
	Action Action
	// Bundle and Permit are what stands in the desired bundle after the step; empty if that does not change.
	Bundle bundle.Digest
	Permit bundle.Impact
	// Boot is the request of a person for a boot that the agent may do, which the operator signs; empty if there is none.
	Boot bundle.Digest
	// Urgent is true for a bundle that a paused node gets too.
	Urgent bool
	// Again gives a permission again that was given already, and that the node agent does not use because it was too long ago.
	Again bool
	// Cordon is about unschedulable and its mark, ScaleDown about the autoscaler's annotation.
	Cordon, ScaleDown Switch
	// State is what stands on the Node after the step.
	State State
	// Why is for people.
	Why string
}
