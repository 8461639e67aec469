package rollout

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/controller/fleet"
	"wmco/controller/inputs/desired"
	"wmco/controller/status"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

const presentKey, earlierKey = "ssh-ed25519 present", "ssh-ed25519 earlier"

// secretWith is a Secret with the present key, or one that cannot be used.
type secretWith struct{ problem bundle.Finding }

func (secretWith) OnKeyChange(func())                    {}
func (s secretWith) PublicKey() (string, bundle.Finding) { return presentKey, s.problem }

// hostsWith are the hosts of nodes, by the key that the record of each has. The agent of "win-noagent" changes no keys.
func hostsWith(accepted map[string]string) *desired.Hosts {
	h := &desired.Hosts{LoginKey: presentKey}
	var records []record.Record
	for name, key := range accepted {
		r := record.New(record.OfEntry(name))
		r.Node, r.Adopting = name, name == "win-adopting"
		records = append(records, r)
		h.All = append(h.All, render.Node{Name: name, Address: name, Backing: render.BackingInstance, AcceptedKey: key, NoKeys: name == "win-noagent"})
	}
	h.Records = record.NewSet(records...)
	return h
}

// TestWhichHostsAcceptTheKeyIsSaid: by the operator's records, with why for those that do not.
func TestWhichHostsAcceptTheKeyIsSaid(t *testing.T) {
	refuses := status.Host{Reason: "LoginRefused", Message: "the host refuses the login", Fix: "add the public key"}
	for name, c := range map[string]struct {
		accepted       map[string]string
		problems       map[string]status.Host
		silent         string
		status, reason string
		message        []string
		counts         map[string]int
	}{
		"all do":              {map[string]string{"win-a": presentKey, "win-b": presentKey}, nil, "", "True", status.ReasonKeysAccepted, []string{"all nodes accept"}, map[string]int{"current": 2}},
		"no node":             {nil, nil, "", "True", status.ReasonKeysAccepted, nil, map[string]int{}},
		"one is exchanged":    {map[string]string{"win-a": presentKey, "win-b": earlierKey}, nil, "", "False", status.ReasonKeysChanging, []string{"1 of 2 nodes", "win-b (the host accepts both keys"}, map[string]int{"current": 1, "older": 1}},
		"one does not answer": {map[string]string{"win-a": earlierKey}, nil, "win-a", "False", status.ReasonKeysChanging, []string{"win-a (the host does not respond"}, map[string]int{"older": 1}},
		"one is not reached":  {map[string]string{"win-a": earlierKey}, map[string]status.Host{"win-a": {Reason: "Unreachable"}}, "", "False", status.ReasonKeysChanging, []string{"win-a (the host does not respond"}, map[string]int{"older": 1}},
		"nothing is known":    {map[string]string{"win-a": ""}, nil, "", "False", status.ReasonKeysChanging, []string{"win-a (the operator has not logged in"}, map[string]int{"unknown": 1}},
		"its agent is old":    {map[string]string{"win-noagent": earlierKey}, nil, "", "False", status.ReasonKeysChanging, []string{"too old to change keys"}, map[string]int{"older": 1}},
		"one refuses": {map[string]string{"win-a": earlierKey, "win-b": earlierKey}, map[string]status.Host{"win-b": refuses}, "", "False", status.ReasonKeyNotAccepted,
			[]string{"2 of 2 nodes", ": win-b (the host refuses the login); win-a (", "; fix: add the public key"}, map[string]int{"older": 2}},
		"one refuses another account": {map[string]string{"win-a": presentKey}, map[string]status.Host{"win-a": refuses}, "", "False", status.ReasonKeyNotAccepted, []string{"win-a (the host refuses"}, map[string]int{"current": 1}},
		"four are exchanged":          {map[string]string{"win-a": earlierKey, "win-b": earlierKey, "win-c": earlierKey, "win-d": earlierKey}, nil, "", "False", status.ReasonKeysChanging, []string{"4 of 4 nodes", "win-c", "; and 1 more node"}, map[string]int{"older": 4}},
		"one is adopted":              {map[string]string{"win-adopting": earlierKey}, nil, "", "True", status.ReasonKeysAccepted, nil, map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			l := readLoginKeys(secretWith{}, hostsWith(c.accepted))
			got := l.keysAccepted(func(node string) (status.Host, bool) { h, ok := c.problems[node]; return h, ok }, func(node string) bool { return node == c.silent })
			if got.Type != status.KeysAccepted || string(got.Status) != c.status || got.Reason != c.reason {
				t.Errorf("%+v", got)
			}
			for _, part := range c.message {
				if !strings.Contains(got.Message, part) {
					t.Errorf("%q lacks %q", got.Message, part)
				}
			}
			if diff := cmp.Diff(c.counts, l.countByState()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	l := readLoginKeys(secretWith{bundle.Finding{Reason: "PrivateKeyMissing", Message: "it does not exist", Fix: "create it"}}, hostsWith(map[string]string{"win-a": earlierKey}))
	if c := l.keysAccepted(nil, nil); c.Status != metav1.ConditionUnknown || c.Reason != status.ReasonKeyUnusable || !strings.Contains(c.Message, "stay as they are") || !strings.Contains(c.Message, "create it") {
		t.Errorf("without a key: %+v", c)
	}
	if readLoginKeys(nil, hostsWith(nil)) != nil {
		t.Error("an operator that reaches no hosts has keys")
	}
}

// TestANodeThatRefusesTheKeyIsListed, unless it needs something else.
func TestANodeThatRefusesTheKeyIsListed(t *testing.T) {
	problem := status.Host{Name: "win-1", Node: "win-1", State: nodestate.Waiting, Reason: "LoginRefused", Message: "refused"}
	r := rendering{loginProblem: func(node string) (status.Host, bool) { return problem, node == "win-1" }}
	if h, ok := r.listedHost(fleet.Row{Node: "win-1", State: nodestate.Updated}); !ok || h.Reason != "LoginRefused" {
		t.Errorf("%+v, %t", h, ok)
	}
	if h, ok := r.listedHost(fleet.Row{Node: "win-1", State: nodestate.NotReporting}); !ok || h.State != nodestate.NotReporting {
		t.Errorf("a silent one: %+v, %t", h, ok)
	}
	if h, ok := r.listedHost(fleet.Row{Node: "win-2", State: nodestate.Updated}); ok {
		t.Errorf("another one: %+v", h)
	}
}
