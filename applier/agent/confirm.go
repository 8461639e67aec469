package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"wmco/applier/protocol"
	"wmco/bundle"
)

// Confirmers of a run, as its journal keeps them: a process that resumes the run asks as the one did that began it.
const (
	// confirmedByNode is for a change that cannot separate the host from the cluster.
	confirmedByNode = "node"
	// confirmedByLink is for one that can.
	confirmedByLink = "node and its link"
)

// confirmerOf returns who confirms a plan, empty if the probes of its services are enough.
func confirmerOf(o protocol.Observation) string {
	switch {
	case mayCutConnection(o):
		return confirmedByLink
	case o.Impact.Rank() > bundle.ImpactNone.Rank():
		return confirmedByNode
	}
	return ""
}

// linkServices are the services without which the Node does not become Ready.
var linkServices = []string{"containerd", linkKubelet, "hybrid-overlay-node"}

const linkKubelet = "kubelet"

// mayCutConnection reports whether a plan can separate the host from the cluster. The proxy is the environment of the
// services, so a change of it restarts them.
func mayCutConnection(o protocol.Observation) bool {
	if slices.ContainsFunc(o.Restarts, func(name string) bool { return slices.Contains(linkServices, name) }) {
		return true
	}
	return slices.ContainsFunc(o.Actions, func(x protocol.Action) bool {
		if x.Entry == bundle.KindService.ID(bundle.AgentService) {
			return true // a new program may be unable to reach the API server
		}
		kind, _, _ := strings.Cut(string(x.Entry), " ")
		switch bundle.EntryKind(kind) { //nolint:exhaustive // the others change nothing between the host and the cluster
		case bundle.KindTrustedCA, bundle.KindRoute, bundle.KindFirewall, bundle.KindNetwork, bundle.KindHostName:
			return true
		}
		return false
	})
}

// confirmationOfResumed returns how a run is confirmed that another process of the agent began; nil if another process
// does it.
func (a *Agent) confirmationOfResumed(confirmer string) func(context.Context) error {
	switch confirmer {
	case confirmedByNode, confirmedByLink:
		return a.confirmationOf(confirmer)
	}
	return nil
}

func (a *Agent) confirmationOf(confirmer string) func(context.Context) error {
	return confirmation{agent: a, cuts: confirmer == confirmedByLink}.awaitConfirmation
}

// confirmation waits until the Node is Ready with a sign of life that is newer than the change.
type confirmation struct {
	agent *Agent
	// cuts reports whether the change can separate the host from the cluster.
	cuts bool
}

const confirmPause = time.Second

var (
	errNotReady = errors.New("the Node is not Ready")
	errSilent   = errors.New("the kubelet has not reported since the change")
	errAway     = errors.New("the API server cannot be reached since the change")
)

// kubeletError is why a change is not confirmed, where the log of the kubelet has the cause.
type kubeletError struct{ error }

func (e kubeletError) Unwrap() error { return e.error }

// BlamedService has the engine read the log of the kubelet.
func (kubeletError) BlamedService() string { return linkKubelet }

// awaitConfirmation returns nil when the change is confirmed. If the API server cannot be reached until the end, only a
// change that can be the reason is not.
//
// It begins when all services run again. A sign of life counts if it is another one than the first that is seen: that
// one may be from before the change. Times are not compared, as the clock may be set in between.
func (c confirmation) awaitConfirmation(ctx context.Context) error {
	var first time.Time
	seen := false
	last, away := errNotReady, false
	for {
		heartbeat, err := c.agent.Cluster.Heartbeat(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			last, away = fmt.Errorf("%w: %w", errAway, err), true
		case heartbeat.IsZero():
			last, away, seen = errNotReady, false, true
		case seen && !heartbeat.Equal(first):
			return nil
		default:
			first, seen = heartbeat, true
			last, away = errSilent, false
		}
		select {
		case <-ctx.Done():
			if away && !c.cuts {
				return nil
			}
			if away {
				return last
			}
			return kubeletError{last}
		case <-c.agent.Engine.Clock.After(confirmPause):
		}
	}
}
