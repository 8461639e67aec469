package agent

import (
	"errors"
	"time"

	"wmco/applier"
	"wmco/bundle"
	"wmco/bundle/published"
)

// Retries of what could not be fetched or applied: the pause doubles.
const (
	firstRetry = 2 * time.Second
	lastRetry  = 5 * time.Minute
	// A boot that Windows or a person has dropped (shutdown /a, or a restart of others that was scheduled and aborted)
	// is asked for again.
	bootInterval = 10 * time.Minute
	// publishedWithin is how long a layer may be missing before that is a failure.
	publishedWithin = 2 * time.Minute
	// lockedWithin is how long another run may change the host before that is a failure. That of an operator waits for
	// its confirmation for five minutes: an adoption starts this agent, and is confirmed when the kubelet reports.
	lockedWithin = 6 * time.Minute
)

// follower is where the agent is with the bundle that is published.
type follower struct {
	// text is the annotation that the rest is about.
	text string
	// accepted reports whether the host may act on it; desired is its content then.
	accepted bool
	desired  published.Desired
	// report is how it ended; its State is empty before.
	report published.Report
	// retryAt is when it is retried; zero is never. Tried is how often in a row that has failed, since when the
	// first did.
	retryAt, since time.Duration
	tried          int
	// unfinished reports whether the bundle is being rolled back, and that has not ended: it is not retried.
	unfinished bool
	// size is how many bytes the last plan writes. room is the room to wait for, nil if the disk is not full; saidAt is
	// when that was reported.
	size   int64
	room   *roomError
	saidAt time.Duration
	// fetches is how many had ended when the bundle was followed last because of one.
	fetches int
	// permitted is when the agent first had the published state, since the boot; it is negative for an earlier boot.
	permitted time.Duration
}

// isDue reports whether there is something to do about the Node: its annotation has changed, or something failed and is
// tried again.
func (f *follower) isDue(n Node, now time.Duration) bool {
	switch {
	case n.Desired == "" || n.Paused && !f.isUrgent(n):
		return false
	case n.Desired != f.text:
		return true
	case n.Retry != f.report.Retry && f.report.State != published.StateApplied: // a person asks
		return true
	}
	return f.retryAt != 0 && now >= f.retryAt
}

// isUrgent reports whether the published state is for paused nodes too. It is looked at before it is accepted: one that
// is not urgent is not refused on a paused node either, but when that is not paused any longer.
func (f *follower) isUrgent(n Node) bool {
	if n.Desired == f.text {
		return f.desired.Urgent || f.desired.Remove
	}
	d, err := published.DecodeDesired(n.Desired)
	return err == nil && (d.Urgent || d.Remove)
}

// forgiveCrashes forgets crashes when a person asks for another try.
func (f *follower) forgiveCrashes(n Node) {
	if n.Retry != f.report.Retry && n.Desired == f.text && len(f.report.Crashed) > 0 {
		f.report.Retry, f.report.Crashed = n.Retry, nil
	}
}

// checkApplied follows the published bundle again if another one was applied, as by a person over SSH.
func (f *follower) checkApplied(has bundle.Digest, now time.Duration) {
	if f.report.State == published.StateApplied && has != "" && has != f.desired.Bundle {
		f.report.Applied, f.report.Layers, f.retryAt = has, nil, now
	}
}

// allowedRepair is the highest impact of a repair. A change is applied at the price that is permitted for it; a service
// of what the host has is restarted without asking, also while the API server is away. More than that is permitted for
// the published bundle alone.
func (f *follower) allowedRepair(now time.Duration) bundle.Impact {
	if d := f.desired; d.Bundle != "" && f.report.Applied == d.Bundle && f.permittedImpact(now).Rank() > bundle.ImpactRestart.Rank() {
		return f.permittedImpact(now)
	}
	return bundle.ImpactRestart
}

// noteWaiting notes that nothing is published, on a Node for which nothing was before: the operator publishes for a
// node whose facts it knows, and this report has them.
func (f *follower) noteWaiting() {
	if f.report.State == "" {
		f.report.State = published.StateUnpublished
	}
}

// noteEnd notes how it ended, for good.
func (f *follower) noteEnd(s published.State, message string) {
	f.report.State, f.report.Message, f.report.Cause, f.report.Fault = s, message, "", ""
	f.report.Refused, f.report.Expired, f.report.Log = "", false, bundle.LogTail{}
	f.retryAt, f.tried, f.room = 0, 0, nil
}

// noteRetry notes that it is retried.
func (f *follower) noteRetry(now time.Duration, jitter func(time.Duration) time.Duration) {
	if f.tried == 0 {
		f.since = now
	}
	f.retryAt = now + jitter(min(firstRetry<<min(f.tried, 16), lastRetry))
	f.tried++
}

// noteRepair notes how a repair of the bundle that the host has ended, whose plan had this impact.
func (f *follower) noteRepair(impact bundle.Impact, err error, now time.Duration) {
	current := f.report.State == published.StateApplied || f.report.State == published.StateNeedsPermission
	switch {
	case !current || f.report.Applied != f.desired.Bundle:
	case err == nil:
		f.report.State, f.report.Impact, f.report.Message = published.StateApplied, "", ""
	case applier.CheckImpact(impact, f.allowedRepair(now)) != nil:
		f.report.State, f.report.Impact, f.report.Message = published.StateNeedsPermission, impact, err.Error()
		f.report.Expired = f.permissionExpired(now)
	}
}

// followAfterRepair follows the bundle again that the host has, if a repair lacks contents: the published bundle has those
// of files, and names the executables to fetch.
func (f *follower) followAfterRepair(err error, now time.Duration) {
	var refused *applier.RefusedError
	if errors.As(err, &refused) && len(refused.Missing) > 0 && f.report.Applied == f.desired.Bundle && f.retryAt == 0 {
		f.retryAt = now
	}
}

// refusedAgain has what was refused looked at again after a repair, which may have restored the keys, or found those of
// another bundle.
func (f *follower) refusedAgain(now time.Duration) {
	if f.report.Refused != "" {
		f.retryAt = now
	}
}

// recallReport takes from the report of an earlier process what this one cannot know otherwise. It reports whether a
// person has asked for another try since.
func (f *follower) recallReport(text, retry string) bool {
	before, err := published.DecodeReport(text)
	if err != nil {
		return retry != ""
	}
	f.report = before
	return before.Retry != retry
}
