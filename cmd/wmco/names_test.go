package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNamesOfTheProgram(t *testing.T) {
	for program, want := range map[string]struct {
		name   string
		before []string
	}{
		"wmco":                                  {"wmco", nil},
		"/usr/bin/wmco":                         {"wmco", nil},
		"./bin/wmco-linux-amd64":                {"wmco", nil},
		"/usr/local/bin/kubectl-windows":        {"kubectl windows", nil},
		"oc-windows":                            {"oc windows", nil},
		"kubectl-windows.exe":                   {"kubectl windows", nil},
		"/home/me/bin/kubectl_complete-windows": {"kubectl windows", []string{"__complete"}},
		"/usr/bin/gather":                       {"wmco", []string{"gather"}},
	} {
		if name, before := calledAs(program, func(string) string { return "" }); name != want.name || !slices.Equal(before, want.before) {
			t.Errorf("%s: %q, %q", program, name, before)
		}
	}
}

// TestMustGatherSaysSinceWhen: oc adm must-gather passes --since and --since-time on as variables.
func TestMustGatherSaysSinceWhen(t *testing.T) {
	for name, value := range map[string]string{"MUST_GATHER_SINCE": "2h0m0s", "MUST_GATHER_SINCE_TIME": "2026-01-01T10:00:00Z"} {
		variable := func(asked string) string { return map[string]string{name: value}[asked] }
		flag := map[string]string{"MUST_GATHER_SINCE": "--since=", "MUST_GATHER_SINCE_TIME": "--since-time="}[name] + value
		if _, before := calledAs("/usr/bin/gather", variable); !slices.Equal(before, []string{"gather", flag}) {
			t.Errorf("%s: %q", name, before)
		}
		if _, before := calledAs("wmco", variable); len(before) > 0 {
			t.Errorf("%s changes wmco: %q", name, before)
		}
	}
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		flags gatherFlags
		want  time.Time
		bad   bool
	}{
		{gatherFlags{}, time.Time{}, false},
		{gatherFlags{since: 2 * time.Hour}, noon.Add(-2 * time.Hour), false},
		{gatherFlags{sinceTime: "2026-01-01T10:00:00Z"}, noon.Add(-2 * time.Hour), false},
		{gatherFlags{sinceTime: "yesterday"}, time.Time{}, true},
		{gatherFlags{since: -time.Hour}, time.Time{}, true},
	} {
		got, err := tt.flags.logsSince(noon)
		if !got.Equal(tt.want) || (err != nil) != tt.bad {
			t.Errorf("%+v: %s, %v", tt.flags, got, err)
		}
	}
}

func TestUsageTextsFollowTheName(t *testing.T) {
	for _, args := range [][]string{{"diff", "--help"}, {"golden", "check", "--help"}, {"--help"}} {
		var out bytes.Buffer
		if status := runCommand(t.Context(), app{name: "kubectl windows", stdout: &out, stderr: &out}, args); status != 0 {
			t.Errorf("%q: %d", args, status)
		}
		if !strings.Contains(out.String(), "\n  kubectl windows ") || strings.Contains(out.String(), "\n  wmco ") {
			t.Errorf("%q:\n%s", args, out.String())
		}
	}
	var out bytes.Buffer
	if status := runCommand(t.Context(), app{name: "oc windows", stdout: &out, stderr: &out}, []string{"nodes"}); status != 2 || out.String() != "oc windows: unknown command \"nodes\": oc windows --help lists the commands\n" {
		t.Errorf("%d: %s", status, out.String())
	}
}
