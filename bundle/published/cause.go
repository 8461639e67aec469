package published

import "slices"

// Cause is why a bundle was rolled back.
type Cause string

const (
	// CauseStep means that a change could not be made, such as a file that another program has locked.
	CauseStep Cause = "step"
	// CauseService means that a service did not become healthy.
	CauseService Cause = "service"
	// CauseConfirmation means that the Node did not become Ready, or the API server could not be reached any more.
	CauseConfirmation Cause = "confirmation"
	// CauseInterrupted means that the run was interrupted, and could not be resumed.
	CauseInterrupted Cause = "interrupted"
	// CauseOther means that the agent reports no cause, or one that this program does not know.
	CauseOther Cause = "other"
)

// Causes returns every cause.
func Causes() []Cause {
	return []Cause{CauseStep, CauseService, CauseConfirmation, CauseInterrupted, CauseOther}
}

// Known returns the cause, or CauseOther for one that is unknown: a node chooses no label of a metric.
func (c Cause) Known() Cause {
	if slices.Contains(Causes(), c) {
		return c
	}
	return CauseOther
}
