package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/render"
)

// The Machine of a node is replaced where its host refuses the operator's key and its node agent cannot write it, if
// that is asked for (setting keys):
//
//	the host refuses the key, under its pinned host key, for refusedWithin --> whyNotReplaced --> the Machine of its record is deleted (MachineReplacer)
//
// Which Machine that is stands in the operator's own record. Whoever may patch Nodes writes their annotations: that an
// agent cannot read keys, or an annotation that is missing, is no reason (keyEvidence).

// refusedWithin is how long a host refuses the key before its Machine is replaced, as long as of a Machine that joins.
const refusedWithin = 30 * time.Minute

// MachineReplacer deletes Machines so that their MachineSets create others; machine.Machines does.
type MachineReplacer interface {
	// ReplaceNode deletes the Machine with this UID, whose host is a node. It returns why it does not, empty if it
	// does.
	ReplaceNode(ctx context.Context, machine types.UID, because string) (why string, err error)
}

// noteRefusal notes whether a host has refused a login, and returns for how long it has, and for how long the node
// agent has been unable to write the key for one reason; zero if it has not. A reason that comes and goes, as a report
// that another client writes, is counted from its start each time.
func (lc *loginConfirmer) noteRefusal(a loginAttempt, err error) time.Duration {
	var refused *remote.AuthError
	if !errors.As(err, &refused) {
		lc.refusing.ForgetHost(a.node.Name)
		return 0
	}
	return max(lc.refusing.SeenFor(a.node.Name,
		string(a.record.ID())+" "+string(a.node.UID)+" "+a.host.Wanted.LoginKey+" "+lc.keyEvidence(a),
		lc.joiner.Elapsed()), 1)
}

// replaceRefusing has the Machine of a host replaced that has refused the key for long enough, if that is asked for. It
// returns the sentence about it after the message, empty for none.
func (lc *loginConfirmer) replaceRefusing(ctx context.Context, a loginAttempt, refused time.Duration) string {
	if refused == 0 || a.host.Wanted.Cluster.Settings.Keys != render.KeysReplace {
		return ""
	}
	why := lc.whyNotReplaced(a, refused)
	if why == "" {
		var err error
		if why, err = lc.machines.ReplaceNode(ctx, a.record.Machine,
			"its host does not accept the key of cloud-private-key, and its node agent cannot write it"); err != nil {
			lc.log.Info("replacing the Machine of a host that refuses the key", "node", a.node.Name, "error", err)
			why = err.Error()
		}
	}
	if why != "" {
		return "; its Machine is not replaced: " + why
	}
	return "; its Machine is replaced"
}

// whyNotReplaced returns why the Machine of a host that refuses the key stays, empty if it is to be replaced.
func (lc *loginConfirmer) whyNotReplaced(a loginAttempt, refused time.Duration) string {
	settings, evidence := a.host.Wanted.Cluster.Settings, lc.keyEvidence(a)
	switch {
	case a.record.Machine == "" || a.host.Backing != render.BackingMachine:
		return "the host has none"
	case a.record.HostKey == "":
		return "no host key is pinned, so another host may have answered"
	case a.node.IsPaused() || settings.Rollout.Paused:
		return "the node or the rollout is paused"
	case evidence == "" && (a.host.NoKeys || a.host.OlderAgent):
		return "its node reports an agent that changes no keys, which is no reason to delete anything (fix: see " +
			"that the node gets the executables of this operator, or delete the Machine)"
	case evidence == "":
		return "its node agent writes the key with its next bundle"
	case refused <= refusedWithin:
		return fmt.Sprintf("it is when the host has refused the key for %s", refusedWithin)
	}
	if opens := settings.Rollout.NextStart(bundle.ImpactDrain, lc.joiner.Now()); !opens.IsZero() {
		return "changes that drain wait for " + opens.UTC().Format(time.RFC3339)
	}
	return ""
}

// Evidence that nothing that the operator publishes brings the key to a host (keyEvidence).
const (
	evidenceUnknown = "unknown"
	evidenceWritten = "written"
	evidenceSilent  = "silent"
)

// keyEvidence returns why no published bundle brings the key to the host; empty if one does, or if
// only annotations of the Node are the evidence:
//
//	evidenceUnknown  the operator's record has no key that the host accepts, so its bundle has none (render.keyEntries)
//	evidenceWritten  the operator has published the bundle with the key, and the agent reports that it is applied
//	evidenceSilent   the agent has stopped to renew its condition in the status of the Node, while the kubelet lives
//
// The last two can be feigned for a while, by who writes reports, or the status of Nodes. An agent that lives writes
// the key, and its report, well within refusedWithin.
func (lc *loginConfirmer) keyEvidence(a loginAttempt) string {
	switch {
	case !a.isKnown:
		return evidenceUnknown
	case lc.joiner.Silence.IsSilent(a.node):
		return evidenceSilent
	case hasKeys(a.host, a.hasKey):
		return evidenceWritten
	}
	return ""
}
