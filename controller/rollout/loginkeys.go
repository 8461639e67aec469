package rollout

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/inputs/desired"
	"wmco/controller/status"
	"wmco/render"
)

// LoginKey provides the public key with which the operator logs in to hosts. hosts.Login implements it.
type LoginKey interface {
	// OnKeyChange registers a function that is called when the key changes.
	OnKeyChange(func())
	// PublicKey returns the public key, and a finding if the Secret cannot be used; a zero finding if it can.
	PublicKey() (string, bundle.Finding)
}

// States of the key of a node, for the metric.
const (
	// keyCurrent means that the host is known to accept the current key.
	keyCurrent = "current"
	// keyOlder means that it is known to accept another key.
	keyOlder = "older"
	// keyUnknown means that there was no login since the operator records the key.
	keyUnknown = "unknown"
)

// loginKeys are the keys that the hosts of nodes are known to accept, as the operator's records have them.
type loginKeys struct {
	// problem is why the private key cannot be used now.
	problem bundle.Finding
	// states are those of all nodes by name; noKeys are nodes whose agents change no keys.
	states map[string]string
	noKeys map[string]bool
}

// readLoginKeys returns the keys of the nodes of the inputs; nil without a login. Nodes of the existing operator are left
// out.
func readLoginKeys(login LoginKey, hosts *desired.Hosts) *loginKeys {
	if login == nil {
		return nil
	}
	l := &loginKeys{states: map[string]string{}, noKeys: map[string]bool{}}
	_, l.problem = login.PublicKey()
	for _, n := range hosts.All {
		if r, ok := hosts.Records.RecordOfNode(n.Name); n.Name == "" || n.Unconfirmed ||
			n.Backing == render.BackingNode || !ok || r.Adopting {
			continue
		}
		switch n.AcceptedKey {
		case "":
			l.states[n.Name] = keyUnknown
		case hosts.LoginKey:
			l.states[n.Name] = keyCurrent
		default:
			l.states[n.Name] = keyOlder
		}
		l.noKeys[n.Name] = n.NoKeys
	}
	return l
}

func (l *loginKeys) countByState() map[string]int {
	all := map[string]int{}
	for _, state := range l.states {
		all[state]++
	}
	return all
}

// isAway reports whether a login failed because the host did not answer, not because of the key.
func isAway(h status.Host) bool { return h.Reason == "Unreachable" || h.Reason == "HostSilent" }

// keysAccepted lists the hosts that are not known to accept the key of the operator.
func (l *loginKeys) keysAccepted(problem func(node string) (status.Host, bool),
	isSilent func(node string) bool) metav1.Condition {
	c := metav1.Condition{Type: status.KeysAccepted, Status: metav1.ConditionTrue, Reason: status.ReasonKeysAccepted,
		Message: "the hosts of all nodes accept the key of the Secret cloud-private-key"}
	if l.problem.Reason != "" {
		c.Status, c.Reason = metav1.ConditionUnknown, status.ReasonKeyUnusable
		c.Message = published.Shorten("the private key cannot be used, and the keys on the hosts stay as they are: " +
			findingSentence(l.problem))
		return c
	}
	var failing, others []string
	fix := ""
	for node, state := range l.states {
		h, known := problem(node)
		switch {
		case known && !isAway(h):
			failing = append(failing, node)
		case state != keyCurrent:
			others = append(others, fmt.Sprintf("%s (%s)", node, l.explainState(node, state, known || isSilent(node))))
		}
	}
	slices.Sort(failing)
	slices.Sort(others)
	for i, node := range failing {
		h, _ := problem(node)
		if i == 0 {
			fix = h.Fix
		}
		failing[i] = fmt.Sprintf("%s (%s)", node, published.ShortenTo(h.Message, maxKeyProblem))
	}
	list := slices.Concat(failing, others)
	if len(list) == 0 {
		return c
	}
	c.Status, c.Reason = metav1.ConditionFalse, status.ReasonKeysChanging
	if len(failing) > 0 {
		c.Reason = status.ReasonKeyNotAccepted
	}
	text := fmt.Sprintf("the operator has not verified the key of cloud-private-key on %d of %s: ", len(list),
		bundle.Count(len(l.states), "node")) + bundle.JoinFirst(list, mostReporting, "; ", moreNodes)
	if fix != "" {
		text += "; fix: " + fix
	}
	c.Message = published.Shorten(strings.TrimSpace(text))
	return c
}

// maxKeyProblem is the length in bytes of the problem of one host in the message.
const maxKeyProblem = 200

// explainState returns what a node waits for.
func (l *loginKeys) explainState(node, state string, away bool) string {
	switch {
	case away:
		return "the host does not respond; its keys change when it responds again"
	case l.noKeys[node]:
		return "its node agent is too old to change keys"
	case state == keyUnknown:
		return "the operator has not logged in yet"
	}
	return "the host accepts both keys until the new one is confirmed"
}
