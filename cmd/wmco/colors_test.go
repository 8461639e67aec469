package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"wmco/internal/cli"
)

// uncolored removes the colours that a program has written.
func uncolored(text string) string {
	for _, code := range []string{"0", bold, red, green, yellow, cyan} {
		text = strings.ReplaceAll(text, "\x1b["+code+"m", "")
	}
	return text
}

// TestColorsAreOnTerminalsOnly: with colours, the same words stand in the same places, and nothing but colours is added.
func TestColorsAreOnTerminalsOnly(t *testing.T) {
	t.Chdir("../../golden")
	now := func() time.Time { return time.Date(2026, 6, 3, 0, 0, 0, 0, time.UTC) }
	answer := func(color bool, args ...string) string {
		var out, errOut bytes.Buffer
		if status := runCommand(t.Context(), app{stdin: strings.NewReader(""), stdout: &out, stderr: &errOut, now: now, color: color, version: "0.1.0"}, args); status != cli.ExitDiffers {
			t.Fatalf("%q: status %d\n%s", args, status, errOut.String())
		}
		return out.String()
	}
	proxy := []string{"diff", "--from", "clusters/common", "--from", "clusters/none", "--from", "../hack/demo-changes/proxy.yaml", "--against", "clusters/common", "--against", "clusters/none"}
	for _, c := range []struct {
		args    []string
		colored string
	}{
		{proxy, "\x1b[32m      +"},
		{proxy, "\x1b[1m  ~ environment proxy"},
		{[]string{"status", "--from", "clusters/none"}, "win-a  \x1b[33mWaiting\x1b[0m  -      WaitingForAdoption  True   NoBundle"},
	} {
		plain, colored := answer(false, c.args...), answer(true, c.args...)
		if uncolored(colored) != plain || strings.Contains(plain, "\x1b") {
			t.Errorf("%q without colours differs:\n%s\n%s", c.args, plain, colored)
		}
		if !strings.Contains(colored, c.colored) {
			t.Errorf("%q does not contain %q:\n%q", c.args, c.colored, colored)
		}
	}
	if colored := answer(true, append(proxy, "-o", "markdown")...); strings.Contains(colored, "\x1b") {
		t.Errorf("markdown has colours")
	}
}
