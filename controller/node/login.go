package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"wmco/applier/remote"
	"wmco/bundle/nodestate"
	"wmco/controller/configure"
	"wmco/controller/fleet"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// The login to the host of a node with another key, or another account of its entry (configure.ConfirmLogin). It is
// tried when it may work for the first time, and after each failure (loginPauses). Where it is not wanted
// (render.Settings.ConfirmsKeys), the report of the bundle with the key confirms another key.

// EventLoginNotConfirmed is the reason of an Event about a key or an account with which the operator could not log in.
const EventLoginNotConfirmed = "LoginNotConfirmed"

const actionLogin = "Login"

// attempts are the last logins of this process that were tried to confirm something, by node. The zero value has none.
type attempts struct {
	mu  sync.Mutex
	all map[string]attempt
}

// attempt is what was to be confirmed, when that was tried last, and how often.
type attempt struct {
	what  string
	at    time.Duration
	count int
}

// wantedLogin is a login that is to be tried: what it confirms, and whether there is a reason why it works now.
type wantedLogin struct {
	what    string
	mayWork bool
}

// loginPauses are those after the first login that failed, after the second, and after each one that follows: an agent
// has just changed the file that the SSH server reads.
func loginPauses() []time.Duration {
	return []time.Duration{15 * time.Second, time.Minute, retrySilent}
}

// isDue reports how often this was tried, this time included, if it is to be tried now, and otherwise zero; and in how
// long it is to be tried next. What cannot work yet is tried after the longest pause only: an administrator may have
// given the host the key.
func (a *attempts) isDue(node string, login wantedLogin, now time.Duration) (count int, next time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = map[string]attempt{}
	}
	pauses := loginPauses()
	last, tried := a.all[node]
	if tried = tried && last.what == login.what; !tried {
		last = attempt{what: login.what}
	}
	if tried {
		if left := last.at + pauses[min(max(last.count, 1), len(pauses))-1] - now; left > 0 {
			return 0, left
		}
	} else if !login.mayWork {
		a.all[node] = attempt{login.what, now, len(pauses)}
		return 0, retrySilent
	}
	last.at, last.count = now, last.count+1
	a.all[node] = last
	return last.count, pauses[min(last.count, len(pauses))-1]
}

// forgetAttempt has the next login of a node tried at once.
func (a *attempts) forgetAttempt(node string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.all, node)
}

// loginConfirmer confirms the login to hosts with another key or account, and has the Machines of those that refuse it
// replaced.
type loginConfirmer struct {
	joiner    *configure.Joiner
	namespace string
	// machines replaces Machines whose hosts refuse the key, where that is asked for.
	machines MachineReplacer
	events   nodeEvents
	log      logr.Logger
	// tried are the logins with another key or account, refusing is since when hosts refuse them.
	tried    attempts
	refusing configure.Sightings
}

// forgetLogin drops the notes of a node that no longer exists, or whose login is confirmed.
func (lc *loginConfirmer) forgetLogin(node string) {
	lc.tried.forgetAttempt(node)
	lc.refusing.ForgetHost(node)
	lc.joiner.Unjoined.NoteLogin(node, "", configure.Progress{})
}

// continueLogin confirms another key or account of a host than its record has. It returns when to look
// again, zero for never.
func (lc *loginConfirmer) continueLogin(ctx context.Context, node windowsnode.Node,
	r record.Record) (time.Duration, error) {
	public, _ := lc.joiner.Login.PublicKey()
	if public == "" || !node.IsJoined() {
		return 0, nil
	}
	if written, err := lc.joiner.WriteKeyMark(ctx, node.Node, r); written || err != nil {
		return 0, ignoreConflict(err) // the Node is looked at again when it has changed
	}
	accepted := r.ProvenKey(lc.joiner.Login.RecordKey)
	changed, err := lc.joiner.IsAccountChanged(ctx, lc.namespace, r)
	if err != nil {
		return 0, err
	}
	confirmed := accepted == public && !changed
	if confirmed && !r.KeyReported {
		lc.forgetLogin(node.Name)
		return 0, nil
	}
	h, err := lc.joiner.HostOfNode(ctx, node.Name)
	if errors.Is(err, configure.ErrNotListed) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	byReport := isConfirmedByReport(h, accepted, changed)
	if byReport {
		lc.forgetLogin(node.Name)
		if confirmed {
			return 0, nil
		}
	}
	has, err := lc.hasRenderedBundle(h, node, public)
	if err != nil {
		return 0, err
	}
	what := public + "\n" + configure.LoginAccount(h.Node, h.Wanted.Cluster.Platform) + "\n"
	if has {
		what += string(fleet.Of(node, lc.joiner.Silence).Applied)
	}
	switch {
	case byReport && hasKeys(h, has):
		return 0, ignoreConflict(h.RecordReportedKey(ctx, node.Name, public))
	case byReport:
		return 0, nil // its report wakes this
	}
	count, next := lc.tried.isDue(node.Name, wantedLogin{what, has || accepted == "" || changed || h.NoKeys},
		lc.joiner.Elapsed())
	if count == 0 {
		return next, nil
	}
	err = h.ConfirmLogin(ctx, node.Name)
	return lc.reportLogin(ctx, loginAttempt{node: node, record: r, host: h, hasKey: has, isKnown: accepted != "",
		count: count, next: next}, err), nil
}

// loginAttempt is a login with another key or account to the host of a node.
type loginAttempt struct {
	node   windowsnode.Node
	record record.Record
	host   configure.Host
	// hasKey is true once the node agent has reported the bundle with the key; isKnown is true if it is known which key
	// the host accepts.
	hasKey, isKnown bool
	// count is how often it was tried, next when it is retried.
	count int
	next  time.Duration
}

// ignoreConflict returns an error that is not about an object which was changed at the same time.
func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// hasRenderedBundle reports whether the node agent has reported the bundle that has this key.
func (lc *loginConfirmer) hasRenderedBundle(h configure.Host, node windowsnode.Node, public string) (bool, error) {
	row := fleet.Of(node, lc.joiner.Silence)
	if h.Wanted.LoginKey != public || row.State != nodestate.Updated {
		return false, nil
	}
	list, _, err := h.Wanted.RenderBundles([]render.Node{h.Node})
	return err == nil && len(list) > 0 && list[0].Bundle.Digest == row.Applied, err
}

// isConfirmedByReport reports whether a report confirms another key than the one that the host is known to accept.
func isConfirmedByReport(h configure.Host, accepted string, accountChanged bool) bool {
	return accepted != "" && !accountChanged && !h.Wanted.Cluster.Settings.ConfirmsKeys()
}

// hasKeys reports whether a host whose agent has reported the rendered bundle has keys in it.
func hasKeys(h configure.Host, hasBundle bool) bool { return hasBundle && !h.NoKeys && !h.OlderAgent }

// reportLogin reports how a login ended. A first failure is not reported: it is retried at once. It
// returns when to look again.
func (lc *loginConfirmer) reportLogin(ctx context.Context, a loginAttempt, err error) time.Duration {
	node, h := a.node, a.host
	if err == nil {
		lc.log.Info("the host accepts the operator's key", "node", node.Name)
		lc.forgetLogin(node.Name)
		return 0
	}
	p := configure.ProgressOfError(err)
	if hosts.IsHostBusy(err) || apierrors.IsConflict(err) || configure.IsStopped(err) ||
		p.Reason == configure.ReasonAPIError {
		lc.tried.forgetAttempt(node.Name)
		return configure.AgainSoon
	}
	lc.log.Info("logging in with another key or account", "node", node.Name, "error", err)
	refused := lc.noteRefusal(a, err)
	if a.count > 1 {
		p.Message, p.Fix = describeLoginFailure(h, p, err)
		p.Message += lc.replaceRefusing(ctx, a, refused)
		lc.joiner.Unjoined.NoteLogin(node.Name, h.Address, p)
		lc.events.recordOnNode(node.Node, corev1.EventTypeWarning, EventLoginNotConfirmed, actionLogin, p.DisplayText())
	}
	return a.next
}

// describeLoginFailure returns why a login failed, and what to do.
func describeLoginFailure(h configure.Host, p configure.Progress, err error) (message, fix string) {
	message = "the operator cannot log in with the key of cloud-private-key: " + p.Message
	var refused *remote.AuthError
	switch {
	case !errors.As(err, &refused):
		return message, p.Fix
	case h.NoKeys:
		return message + "; its node agent is older than this operator, and changes no keys", refused.Fix() +
			"; or put the earlier key back into the Secret until the node has the executables of this operator (docs/keys.md)"
	}
	return message, refused.Fix() + "; if the line is there, see in sshd_config of the host whether that file counts for the account (docs/keys.md)"
}
