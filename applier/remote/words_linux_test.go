package remote

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/internal/sshtest/simulated"
)

func TestEveryShellReadsTheSameWords(t *testing.T) {
	everything := ApplyOptions{DryRun: true, MaxImpact: bundle.ImpactDrain, Reboot: true, ConfirmWithin: 10 * time.Minute, Wait: 90 * time.Second}
	for _, words := range [][]string{
		{wordObserve}, {wordVerify, textFlag}, {wordConfirm, string(bundle.Of(nil))}, {wordVersion}, everything.words(),
	} {
		line, err := commandLine(fake.Path, words)
		if err != nil {
			t.Fatal(err)
		}
		for _, shell := range []simulated.Shell{simulated.ShellCmd, simulated.ShellPowerShell, simulated.ShellSh} {
			got, err := simulated.Words(shell, line)
			if err != nil {
				t.Errorf("%s: %s: %v", shell, line, err)
				continue
			}
			// Windows takes two backslashes inside a path for one.
			got[0] = strings.ReplaceAll(got[0], `\\`, `\`)
			if diff := cmp.Diff(append([]string{fake.Path}, words...), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", shell, diff)
			}
		}
		got, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\n' `+line).Output()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append([]string{fake.Path}, words...), strings.Fields(string(got))); diff != "" {
			t.Errorf("sh itself (-want +got):\n%s", diff)
		}
	}
}

func TestWordsThatAShellCouldChangeAreRefused(t *testing.T) {
	for _, word := range []string{"", " ", "a b", "$x", "%x%", "a,b", "a;b", "a=b", "@x", "a'b", `a"b`, "a`b", "a^b", "a&b", "a|b", "a>b", "(a)", "{a}", "!a", "#a", "*", "~", "/x", "ä", "-", "--", "a\nb"} {
		if line, err := commandLine(fake.Path, []string{word}); err == nil {
			t.Errorf("%q: %s", word, line)
		}
	}
	for _, path := range []string{`C:\Program Files\x.exe`, `\\server\x.exe`, `x.exe`, `C:\k\..\x.exe`, `C:\k\%x%.exe`, `C:\k\-x.exe`, `C:/k/x.exe`} {
		if line, err := commandLine(path, nil); err == nil {
			t.Errorf("%q: %s", path, line)
		}
	}
}
