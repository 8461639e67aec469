package remote

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/ownfile"
	"wmco/bundle"
	"wmco/internal/test/sshtest/simulated"
)

func TestEveryShellReadsTheSameCommandLine(t *testing.T) {
	everything := ApplyOptions{DryRun: true, MaxImpact: bundle.ImpactDrain, Reboot: true, ConfirmWithin: 10 * time.Minute, Wait: 90 * time.Second}
	for _, words := range [][]string{
		{wordObserve}, {wordVerify, textFlag}, {wordConfirm, string(bundle.Of(nil))}, {wordVersion}, append(everything.applyFlags(), ownfile.Flag, agentSum),
	} {
		line, err := commandLine(programPath, words)
		if err != nil {
			t.Fatal(err)
		}
		for _, shell := range []simulated.Shell{simulated.ShellCmd, simulated.ShellPowerShell, simulated.ShellSh} {
			got, err := simulated.SplitWords(shell, line)
			if err != nil {
				t.Errorf("%s: %s: %v", shell, line, err)
				continue
			}
			// Windows reads two backslashes inside a path as one.
			got[0] = strings.ReplaceAll(got[0], `\\`, `\`)
			if diff := cmp.Diff(append([]string{programPath}, words...), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", shell, diff)
			}
		}
		got, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\n' `+line).Output()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append([]string{programPath}, words...), strings.Fields(string(got))); diff != "" {
			t.Errorf("sh itself (-want +got):\n%s", diff)
		}
	}
}

func TestWordsThatAShellCouldChangeAreRefused(t *testing.T) {
	for _, word := range []string{"", " ", "a b", "$x", "%x%", "a,b", "a;b", "a=b", "@x", "a'b", `a"b`, "a`b", "a^b", "a&b", "a|b", "a>b", "(a)", "{a}", "!a", "#a", "*", "~", "/x", "ä", "-", "--", "a\nb"} {
		if line, err := commandLine(programPath, []string{word}); err == nil {
			t.Errorf("%q: %s", word, line)
		}
	}
	for _, path := range []string{`C:\Program Files\x.exe`, `\\server\x.exe`, `x.exe`, `C:\k\..\x.exe`, `C:\k\%x%.exe`, `C:\k\-x.exe`, `C:/k/x.exe`} {
		if line, err := commandLine(path, nil); err == nil {
			t.Errorf("%q: %s", path, line)
		}
	}
}

func TestTargets(t *testing.T) {
	for _, tt := range []struct{ text, want, error string }{
		{"10.0.0.5", "Administrator@10.0.0.5", ""},
		{"win-1.example.com:2222", "Administrator@win-1.example.com:2222", ""},
		{"capi@10.0.0.5", "capi@10.0.0.5", ""},
		{`DOM\user@10.0.0.5`, `DOM\user@10.0.0.5`, ""},
		{"user@dom.example@10.0.0.5:22", "user@dom.example@10.0.0.5", ""},
		{"fd00::5", "Administrator@fd00::5", ""},
		{"[fd00::5]:2222", "Administrator@[fd00::5]:2222", ""},
		{"[fd00::5]", "Administrator@fd00::5", ""},
		{"", "", `parsing "": "" is not an address`},
		{"@10.0.0.5", "", `parsing "@10.0.0.5": "" is not an account`},
		{"10.0.0.5:0", "", `parsing "10.0.0.5:0": "0" is not a port`},
		{"10.0.0.5:ssh", "", `parsing "10.0.0.5:ssh": "ssh" is not a port`},
		{"10.0.0.5 ", "", `parsing "10.0.0.5 ": "10.0.0.5 " is not an address`},
	} {
		got, err := ParseTarget(tt.text)
		text, problem := "", ""
		if err != nil {
			problem = err.Error()
		} else {
			text = got.String()
		}
		if text != tt.want || problem != tt.error {
			t.Errorf("%q: %q, %q", tt.text, text, problem)
		}
	}
}
