package node

import (
	"errors"
	"strings"
	"testing"
	"time"

	"wmco/applier/remote"
	"wmco/controller/configure"
	"wmco/controller/inputs/desired"
	"wmco/render"
)

// TestLoginsAreTriedAgainWithPauses: at once when something is different, after longer and longer pauses while nothing is, and after the longest one where
// it cannot work yet.
func TestLoginsAreTriedAgainWithPauses(t *testing.T) {
	var a attempts
	for i, step := range []struct {
		what    string
		mayWork bool
		at      time.Duration
		count   int
		next    time.Duration
	}{
		{"key 2", false, 0, 0, retrySilent},
		{"key 2", false, time.Minute, 0, retrySilent - time.Minute},
		{"key 2, bundle", true, 2 * time.Minute, 1, 15 * time.Second},
		{"key 2, bundle", true, 2*time.Minute + 14*time.Second, 0, time.Second},
		{"key 2, bundle", true, 2*time.Minute + 15*time.Second, 2, time.Minute},
		{"key 2, bundle", true, 3*time.Minute + 15*time.Second, 3, retrySilent},
		{"key 2, bundle", true, 4 * time.Minute, 0, retrySilent - 45*time.Second},
		{"key 2, bundle", true, 14 * time.Minute, 4, retrySilent},
		{"key 3", true, 14 * time.Minute, 1, 15 * time.Second},
		{"key 4", false, 15 * time.Minute, 0, retrySilent},
		{"key 4", false, 25 * time.Minute, 4, retrySilent},
	} {
		if count, next := a.isDue("win-a", wantedLogin{step.what, step.mayWork}, step.at); count != step.count || next != step.next {
			t.Errorf("step %d: %d, %s; want %d, %s", i, count, next, step.count, step.next)
		}
	}
	a.forgetAttempt("win-a")
	if count, _ := a.isDue("win-a", wantedLogin{"key 4", true}, 25*time.Minute); count != 1 {
		t.Errorf("after it was forgotten: %d", count)
	}
	if count, _ := a.isDue("win-b", wantedLogin{"key 4", true}, 25*time.Minute); count != 1 {
		t.Errorf("another node: %d", count)
	}
}

// TestWhatConfirmsAKey: a report, unless only a login can show it, or logins are asked for.
func TestWhatConfirmsAKey(t *testing.T) {
	for name, c := range map[string]struct {
		ssh      render.SSHMode
		keys     render.KeysMode
		accepted string
		account  bool
		report   bool
	}{
		"as set":                            {render.SSHJoinAndRescue, render.KeysRotate, "earlier", false, true},
		"logins are asked for":              {render.SSHAlways, render.KeysRotate, "earlier", false, false},
		"refusals are asked for":            {render.SSHJoinAndRescue, render.KeysReplace, "earlier", false, false},
		"it is not known what it accepts":   {render.SSHJoinAndRescue, render.KeysRotate, "", false, false},
		"the entry has another account":     {render.SSHJoinAndRescue, render.KeysRotate, "earlier", true, false},
		"another account, logins asked for": {render.SSHAlways, render.KeysRotate, "earlier", true, false},
	} {
		inputs := &desired.Hosts{}
		inputs.Cluster.Settings = render.DefaultSettings()
		inputs.Cluster.Settings.SSH, inputs.Cluster.Settings.Keys = c.ssh, c.keys
		if got := isConfirmedByReport(configure.Host{Wanted: inputs}, c.accepted, c.account); got != c.report {
			t.Errorf("%s: %t", name, got)
		}
	}
	for name, h := range map[string]render.Node{"reads no keys": {NoKeys: true}, "reads no names": {OlderAgent: true}} {
		if hasKeys(configure.Host{Node: h}, true) {
			t.Errorf("the report of an agent that %s confirms a key", name)
		}
	}
	if !hasKeys(configure.Host{}, true) || hasKeys(configure.Host{}, false) {
		t.Error("a report confirms a key where it is in the bundle alone")
	}
}

// TestWhatToDoAboutARefusedLogin depends on whether the node agent can add a key.
func TestWhatToDoAboutARefusedLogin(t *testing.T) {
	refused := &remote.AuthError{Target: remote.Target{User: "Administrator", Address: "192.0.2.1:22"}, Err: errors.New("no")}
	for name, c := range map[string]struct {
		err           error
		noKeys        bool
		message, want string
	}{
		"the agent can":   {refused, false, "cannot log in", "sshd_config"},
		"it cannot":       {refused, true, "changes no keys", "put the earlier key back"},
		"another failure": {errors.New("cut off"), true, "cut off", ""},
	} {
		message, fix := describeLoginFailure(configure.Host{Node: render.Node{NoKeys: c.noKeys}}, configure.ProgressOfError(c.err), c.err)
		if !strings.Contains(message, c.message) || !strings.Contains(fix, c.want) {
			t.Errorf("%s: %q, %q", name, message, fix)
		}
	}
}
