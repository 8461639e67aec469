package plan

import (
	"slices"

	"wmco/bundle/published"
)

// sameNode reports whether two observations of a node say the same, but for Seen. Texts and lists that come from the same decoded Node are the same
// memory, so this costs little.
func sameNode(a, b *Node) bool {
	return sameIdentity(a, b) && samePublished(a, b) && sameConditions(a, b) && sameUrgent(&a.Urgent, &b.Urgent) && sameReport(&a.Report, &b.Report) &&
		sameState(&a.State, &b.State)
}

func sameIdentity(a, b *Node) bool {
	return a.Name == b.Name && a.Group == b.Group && a.Target == b.Target && a.Wanted == b.Wanted && a.Cost == b.Cost &&
		a.PayloadPending == b.PayloadPending && a.PayloadKept == b.PayloadKept
}

func samePublished(a, b *Node) bool {
	return a.Published == b.Published && a.Permitted == b.Permitted && a.PublishedUrgent == b.PublishedUrgent && a.Since.Equal(b.Since) &&
		a.Silent == b.Silent && a.Retry == b.Retry && a.Boot == b.Boot && a.Foreign == b.Foreign
}

func sameConditions(a, b *Node) bool {
	taken := a.Drained == b.Drained && a.DrainBlocked == b.DrainBlocked && a.DrainForbidden == b.DrainForbidden && a.ScaleDownDisabled == b.ScaleDownDisabled &&
		a.Unschedulable == b.Unschedulable && a.CordonedFor == b.CordonedFor
	return taken && a.Ready == b.Ready && a.ReadySince.Equal(b.ReadySince) && a.Unsettled == b.Unsettled && a.Joining == b.Joining &&
		a.Paused == b.Paused && a.Leaving == b.Leaving
}

func sameUrgent(a, b *Urgent) bool {
	return a.Bundle == b.Bundle && a.Cost == b.Cost && a.Mixed == b.Mixed && slices.Equal(a.Inputs, b.Inputs)
}

func sameReport(a, b *published.Report) bool {
	result := a.State == b.State && a.Desired == b.Desired && a.Applied == b.Applied && a.Impact == b.Impact && a.Message == b.Message &&
		a.Cause == b.Cause && a.Fault == b.Fault && a.Refused == b.Refused && a.Expired == b.Expired && a.Adopting == b.Adopting && a.Images == b.Images &&
		a.NetworkRestarts == b.NetworkRestarts && a.NetworkUnstable == b.NetworkUnstable && a.SSHStopped == b.SSHStopped
	numbers := a.Schema == b.Schema && a.Program == b.Program && a.Pulled == b.Pulled && a.Retry == b.Retry && a.Rebooted == b.Rebooted && a.Repaired == b.Repaired
	return result && numbers && a.Facts == b.Facts && a.Log.Service == b.Log.Service && slices.Equal(a.Log.Lines, b.Log.Lines) &&
		slices.Equal(a.Layers, b.Layers) && slices.Equal(a.Missing, b.Missing) && slices.Equal(a.RebootPending, b.RebootPending) &&
		slices.Equal(a.Crashed, b.Crashed) && slices.Equal(a.Features, b.Features)
}

func sameState(a, b *State) bool {
	return a.Schema == b.Schema && a.Turn == b.Turn && a.Claim == b.Claim && a.Failed == b.Failed && a.FailedRetry == b.FailedRetry &&
		a.Postponed.Equal(b.Postponed) && a.Booted == b.Booted && a.WindowsBoot == b.WindowsBoot && a.Elapsed == b.Elapsed && slices.Equal(a.Past, b.Past)
}
