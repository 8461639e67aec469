package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
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
		if name, before := called(program); name != want.name || !slices.Equal(before, want.before) {
			t.Errorf("%s: %q, %q", program, name, before)
		}
	}
}

func TestUsageTextsFollowTheName(t *testing.T) {
	for _, args := range [][]string{{"diff", "--help"}, {"golden", "check", "--help"}, {"--help"}} {
		var out bytes.Buffer
		if status := run(t.Context(), app{name: "kubectl windows", stdout: &out, stderr: &out}, args); status != 0 {
			t.Errorf("%q: %d", args, status)
		}
		if !strings.Contains(out.String(), "\n  kubectl windows ") || strings.Contains(out.String(), "\n  wmco ") {
			t.Errorf("%q:\n%s", args, out.String())
		}
	}
	var out bytes.Buffer
	if status := run(t.Context(), app{name: "oc windows", stdout: &out, stderr: &out}, []string{"nodes"}); status != 2 || out.String() != "oc windows: unknown command \"nodes\" for \"oc windows\"\n" {
		t.Errorf("%d: %s", status, out.String())
	}
}
