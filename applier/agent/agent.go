package agent

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"wmco/applier"
	"wmco/applier/agent/executables"
	"wmco/applier/agent/images"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/published"
)

// Options configure an Agent. A zero duration means the default.
type Options struct {
	// ReportOnly repairs nothing.
	ReportOnly bool
	// Interval is the time between two comparisons of the host with its bundle. Full is the time between two comparisons
	// that read the content of every file.
	Interval, Full time.Duration
	// Housekeep is the longest time between two log checks. A log may exceed its limit by the lines of that time.
	Housekeep time.Duration
	// Confirm is how long the node may take to be Ready again after a change that restarts something.
	Confirm time.Duration
	// CloudCertificate is the path of the file with the certificate and the key of cloud-node-manager; empty where it
	// does not run.
	CloudCertificate string
	// LedgerCopy is the path of a copy of the ledger, without file contents. The kubelet serves it with the logs. Empty:
	// no copy.
	LedgerCopy string
	// LogDir is the folder for logs of what outlives the agent; empty is none.
	LogDir string
	// Jitter returns a time that differs from agent to agent and is about d, so that a thousand of them do not act at
	// once.
	Jitter func(d time.Duration) time.Duration
}

const (
	// defaultHousekeep is the time between two checks of logs.
	defaultHousekeep = 30 * time.Second
	// heartbeatInterval is the time between two reports in which nothing has changed.
	heartbeatInterval = 10 * time.Minute
	// lockWait is how long the agent waits for another run, such as one over SSH.
	lockWait = 10 * time.Second
	// readWithin is how long drift is left alone after the start while the Node could not be read: it may be paused.
	// Then it is repaired, as the drift may be what keeps the API server away.
	readWithin = 10 * time.Second
	// defaultConfirm is how long a node may take to be Ready again.
	defaultConfirm = 5 * time.Minute
)

// ErrRestart means that the service of this program was reconfigured: the program ends, so that the service control
// manager starts it with its new configuration.
var ErrRestart = errors.New("the service of this program was reconfigured")

// Agent keeps one host in its desired state. Cluster is nil if the host gets no bundles from a cluster.
type Agent struct {
	Engine  *applier.Engine
	Cluster Cluster
	// Images is the container runtime of the host; nil where no images are pulled.
	Images images.Runtime
	// Registry fetches executables; nil where only the operator copies them.
	Registry executables.Registry
	Log      *slog.Logger
	Options  Options

	// mu guards node and known, which the watch writes.
	mu    sync.Mutex
	node  Node
	known bool

	follower  follower
	reporter  reporter
	crashes   crashes
	booter    booter
	network   hostNetwork
	sshServer sshServer
	// unreachable is what the image gateway lists, empty for none.
	unreachable string
	images      *images.Keeper
	fetcher     *executables.Fetcher
	fetchable   fetchable
	removal     removal
	// repairAt is when the host is compared again, fullAt when every file is read again. As all times of this package
	// they are since the boot of the host: setting its clock changes nothing.
	repairAt, fullAt time.Duration
	// readBy is when drift is repaired although the Node was never read; unread is true after a comparison that waited
	// for the Node.
	readBy time.Duration
	unread bool
	// differs is what the last comparison reported and did not repair, found what this one has found.
	differs, found []protocol.Action
	// reports is true in a comparison that repairs nothing.
	reports bool
	// planned is the impact of the last plan.
	planned bundle.Impact
	// undone is the bundle whose interrupted run this process rolled back, or another one that could not report it, and
	// why.
	undone undone
	// second is the bundle that was rolled back once for a fault of the host.
	second secondTry
	// refused is why an annotation was refused last; empty since one was accepted.
	refused string
	// recorded reports whether the host has a record of it.
	recorded bool
	// has is what the host has by the comparison or the run that ended last; empty while that is not known.
	has bundle.Digest
	// unrepaired is why the last repair could not restore everything, uncopied why the ledger could not be copied.
	unrepaired, uncopied string
	// copies is true while the copy of the ledger may be an old one.
	copies   bool
	repaired int
}

// Run works until the context ends. Its only error is ErrRestart.
func (a *Agent) Run(ctx context.Context) error {
	a.setDefaults()
	changed := make(chan struct{}, 1)
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if a.Cluster != nil {
		watching.Go(func() { a.Cluster.Watch(ctx, func(n Node) { a.setNode(n, changed) }) })
	}
	if a.Cluster != nil && a.Options.CloudCertificate != "" {
		// It does not wait for a run: the health of cloud-node-manager may be what that waits for.
		cloud := cloudIdentity{host: a.Engine.Host, cluster: a.Cluster, clock: a.Engine.Clock, log: a.Log,
			jitter: a.Options.Jitter, path: a.Options.CloudCertificate}
		watching.Go(func() { cloud.renewUntilDone(ctx) })
	}
	if a.keepsImages() {
		a.images = a.newImageKeeper(changed)
		watching.Go(func() { a.images.Run(ctx) })
	}
	if a.fetchesExecutables() {
		a.fetcher = a.newFetcher(changed)
		watching.Go(func() { a.fetcher.Run(ctx) })
	}
	a.recallUndone(ctx)
	a.recallBoots(ctx)
	a.recallRemoval(ctx)
	for {
		if err := a.runDueWork(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-a.Engine.Clock.After(a.timeUntilDue()):
		}
	}
}

func (a *Agent) setDefaults() {
	if a.Options.Jitter == nil {
		a.Options.Jitter = func(d time.Duration) time.Duration { return d }
	}
	a.Options.Confirm = cmp.Or(a.Options.Confirm, defaultConfirm)
	a.Options.Housekeep = cmp.Or(a.Options.Housekeep, defaultHousekeep)
	a.Engine.Emit = a.logApplierEvent
	a.readBy = a.sinceBoot() + readWithin
}

// setNode keeps the newest state of the Node: what came before it does not matter any longer.
func (a *Agent) setNode(n Node, changed chan<- struct{}) {
	n.read = a.sinceBoot()
	a.mu.Lock()
	a.node, a.known = n, true
	a.mu.Unlock()
	wake(changed)
}

// wake has the agent look at what has changed, unless it will already.
func wake(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}

func (a *Agent) latestNode() (Node, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.node, a.known
}

// runDueWork does all work that is due.
func (a *Agent) runDueWork(ctx context.Context) error {
	if a.removal.node != "" { // nothing is to be repaired or applied any longer
		a.continueRemoval(ctx)
		return nil
	}
	a.lookForCrashes(ctx)
	if _, known := a.latestNode(); known && a.unread {
		a.repairAt, a.unread = a.sinceBoot(), false
	}
	a.followFetch()
	acts := false
	// First of all, so that an interrupted run is resumed or rolled back before anything else.
	if a.sinceBoot() >= a.repairAt {
		if err := a.repairDrift(ctx); err != nil {
			return err
		}
		a.repairAt = a.sinceBoot() + a.Options.Jitter(a.Options.Interval)
		if a.unread {
			a.repairAt = a.readBy
		}
		acts = true
	}
	node, known := a.latestNode()
	a.follower.forgiveCrashes(node)
	if known && node.Desired == "" {
		a.follower.noteWaiting()
	}
	// What was read during a comparison that waited for the Node is followed after the repair, which is due now. Else
	// the bundle that it wants would carry the drift, with its impact.
	if known && !a.unread && a.follower.isDue(node, a.sinceBoot()) && a.hasRoom(ctx, node) {
		if err := a.followNode(ctx, node); err != nil {
			return err
		}
		acts = true
	}
	if acts {
		a.lookAtServices(ctx) // what it started and stopped has not crashed
	}
	a.lookAtHostNetwork(ctx, node)
	a.lookAtSSHServer(ctx, node)
	a.lookAtGateway(ctx)
	a.copyLedger(ctx, acts)
	if a.reporter.awaitsEndpoint() {
		a.reporter.observeFacts(ctx, a.Engine.Host)
	}
	a.reporter.noteReport(node, known)
	a.sendReport(ctx)
	if known {
		a.bootOnRequest(ctx, node)
	}
	if err := a.Engine.LimitGrowth(ctx); err != nil && ctx.Err() == nil {
		a.Log.Warn("limiting logs", "error", err)
	}
	return nil
}

// copyLedger keeps the copy of the ledger up to date. What fails is retried with the next step.
func (a *Agent) copyLedger(ctx context.Context, acted bool) {
	a.copies = a.copies || acted
	if a.Options.LedgerCopy == "" || !a.copies {
		return
	}
	err := a.Engine.CopyLedger(ctx, a.Options.LedgerCopy)
	var locked *applier.LockedError
	switch {
	case err == nil:
		a.copies, a.uncopied = false, ""
	case ctx.Err() != nil || errors.As(err, &locked) || err.Error() == a.uncopied:
	default:
		a.uncopied = err.Error()
		a.Log.Warn("copying the ledger", "error", err)
	}
}

// sinceBoot returns the time since the host booted.
func (a *Agent) sinceBoot() time.Duration { return a.Engine.Clock.SinceBoot() }

// timeUntilDue returns how long nothing is due.
func (a *Agent) timeUntilDue() time.Duration {
	if a.removal.node != "" {
		return a.Options.Housekeep
	}
	pause := min(a.Options.Housekeep, a.repairAt-a.sinceBoot())
	if node, _ := a.latestNode(); a.follower.retryAt != 0 && (!node.Paused || a.follower.isUrgent(node)) {
		pause = min(pause, a.follower.retryAt-a.sinceBoot())
	}
	return max(pause, 0)
}

// repairDrift compares with the bundle that was applied last, and restores what differs.
func (a *Agent) repairDrift(ctx context.Context) error {
	begun := a.sinceBoot()
	node, known := a.latestNode()
	a.unread = a.Cluster != nil && !known && begun < a.readBy
	leaves := node.Paused || a.unread
	o := applier.Options{Full: begun >= a.fullAt && !a.unread, DryRun: a.Options.ReportOnly, OnlyInterrupted: leaves}
	a.reports = a.Options.ReportOnly || leaves
	if a.Cluster != nil {
		o.MaxImpact, o.Resume = a.follower.allowedRepair(begun), a.confirmationOfResumed
	}
	a.found, a.planned = nil, bundle.ImpactNone
	outcome, err := a.Engine.Repair(ctx, o)
	if outcome.Resumed && !o.DryRun {
		for _, x := range a.found { // of a run that was resumed although drift is left alone
			a.Log.Info("action", "verb", x.Verb, "entry", x.Entry, "reason", x.Reason)
		}
		a.found = nil
	}
	a.reportDrift()
	a.reporter.unknown = outcome.Unknown
	var locked *applier.LockedError
	if !outcome.Resumed && !errors.As(err, &locked) {
		a.follower.unfinished = false // no run is interrupted
	}
	switch {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // it was asked to stop
	case outcome.Resumed && a.Cluster != nil:
		a.noteResumed(ctx, outcome, err)
	case errors.As(err, &locked):
		a.Log.Info("another run is changing this host", "owner", locked.Owner)
	case err != nil:
		if err.Error() != a.unrepaired { // the same one was reported
			a.Log.Error("repairing", "error", err)
		}
		a.unrepaired = err.Error()
		a.follower.noteRepair(a.planned, err, begun)
		a.follower.followAfterRepair(err, begun)
	default:
		a.unrepaired = ""
		a.follower.noteRepair(a.planned, nil, begun)
		a.countRepaired(ctx, outcome)
	}
	var partial *applier.PartialError
	if o.Full && (err == nil || errors.As(err, &partial)) {
		a.fullAt = begun + a.Options.Full
	}
	if outcome.Result == protocol.ResultSame || outcome.Result == protocol.ResultApplied {
		a.has = outcome.Bundle
		a.follower.checkApplied(outcome.Bundle, a.sinceBoot())
	}
	a.follower.refusedAgain(a.sinceBoot())
	a.reporter.observeFacts(ctx, a.Engine.Host)
	return a.restartAfter(outcome)
}

// countRepaired counts repaired drift.
func (a *Agent) countRepaired(ctx context.Context, o applier.Outcome) {
	if o.Result != protocol.ResultApplied || o.Done == 0 {
		return
	}
	a.repaired += o.Done
	a.sendEventToNode(ctx, Event{Reason: EventRepaired, Message: "configuration drift repaired: " + bundle.Count(o.Done, "change")})
}

func (a *Agent) restartAfter(o applier.Outcome) error {
	if !o.RestartSelf {
		return nil
	}
	a.Log.Info("restarting: the service was reconfigured")
	return ErrRestart
}

// reportDrift logs what differs and is not repaired, when that has changed.
func (a *Agent) reportDrift() {
	if slices.Equal(a.found, a.differs) {
		return
	}
	a.differs = a.found
	if len(a.found) == 0 {
		a.Log.Info("nothing differs anymore")
	}
	for _, x := range a.found {
		a.Log.Warn("differs", "verb", x.Verb, "entry", x.Entry, "reason", x.Reason)
	}
}

// buildReport is the agent's report.
func (a *Agent) buildReport() published.Report {
	r := a.follower.report
	r.Rebooted, r.NetworkRestarts, r.NetworkUnstable = a.booter.done, a.network.count, a.network.unstable
	r.Program, r.Repaired, r.Facts, r.Features = a.Engine.Program, a.repaired, a.reporter.canonicalFacts(), published.Features()
	r.SSHStopped, r.ImagesUnreachable = a.sshServer.stopped, a.unreachable
	a.reportImages(&r)
	a.reportFetch(&r)
	a.reportRemoval(&r)
	return r
}
