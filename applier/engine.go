package applier

import (
	"context"
	"time"

	"wmco/applier/protocol"
	"wmco/bundle"
)

// Engine applies bundles to one host.
type Engine struct {
	Host  Host
	Clock Clock
	// Permits returns why no bundle may have something that this one has, such as a foreign service; cmd/wmco-node has
	// layout.Check. An engine without it refuses every bundle. What records name is removed and restored without it.
	Permits func(bundle.Bundle) error
	// Program is the version of the program that runs the engine.
	Program string
	// Owner is what others read who find the host locked.
	Owner string
	// Self is the service that the program runs as, if it does. It is never stopped: the program itself acts on
	// Outcome.RestartSelf.
	Self string
	// NodeName returns the name in the client certificate of the kubelet, empty where there is none. Nil is a host
	// without a kubelet.
	NodeName func(context.Context) (string, error)
	// ChangeNode accepts the bundle of another Node than the one that the host is.
	ChangeNode bool
	// Reset is the name of the Node that this host may stop being: a bundle with which a host joins is refused on the
	// host of any other.
	Reset string
	// Emit receives the events of a run; nil drops them.
	Emit func(protocol.Event)
	// GuardWait is how long GuardHandover waits for a confirmation; 0 is the time that the confirmation may take, and
	// guardSlack.
	GuardWait time.Duration
	// Settle limits how long services have to stay healthy, for hosts whose services do not change by themselves. 0 is
	// no limit.
	Settle time.Duration
	// Backoff is what the repairs of this engine remember.
	Backoff Backoff
}

// Clock reports the time and waits.
type Clock interface {
	Now() time.Time
	// SinceBoot returns how long the host has run since it booted. Setting its clock does not change it.
	SinceBoot() time.Duration
	// After sends once d has passed.
	After(d time.Duration) <-chan time.Time
}

// Options are how a bundle is applied.
type Options struct {
	// DryRun stops before the first write.
	DryRun bool
	// MaxImpact refuses a plan of a higher impact; empty allows everything.
	MaxImpact bundle.Impact
	// Reboot lets the engine reboot the host if something waits for it.
	Reboot bool
	// RemoveSigningKeys accepts a bundle without signing keys (bundle.SigningKeysFile) on a host that an earlier bundle
	// gave some. Only Apply uses it.
	RemoveSigningKeys bool
	// Full reads all files, whatever the cache has.
	Full bool
	// OnlyChanges leaves drift alone: only what the bundle that was applied last does not have is changed. Only Apply
	// uses it.
	OnlyChanges bool
	// LockWait is how long to wait while another run has the host locked.
	LockWait time.Duration
	// OnlyInterrupted ends an interrupted run, and repairs nothing: without one, what differs is only reported. Only
	// Repair uses it.
	OnlyInterrupted bool
	// Restart are services that are restarted although nothing differs. Only Repair uses it.
	Restart []string
	// Confirm is called when all services are healthy; its error rolls back. Nil confirms at once.
	Confirm func(context.Context) error
	// ConfirmWithin is how long Confirm may take.
	ConfirmWithin time.Duration
	// Confirmer names whom Confirm asks, for a process that takes up the run after an interruption.
	Confirmer string
	// Resume returns the Confirm of an interrupted run with this Confirmer. Without one, what waits for a confirmation
	// goes on to wait for Engine.Confirm. Apply uses it only for a run that the program before this one has handed
	// over.
	Resume func(confirmer string) func(context.Context) error
}

// Outcome is how a run ended.
type Outcome struct {
	protocol.Event
	// RestartSelf reports whether the service Self has another configuration than it runs with.
	RestartSelf bool
	// Resumed reports whether the run was begun by another process, which was interrupted.
	Resumed bool
	// Unknown are the kinds of settings that could not be read and were left alone.
	Unknown []bundle.UnknownFact
}
