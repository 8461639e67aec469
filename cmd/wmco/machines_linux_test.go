package main

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wmco/bundle/reason"
	"wmco/internal/cli"
	"wmco/internal/hostsim/folderhost"
)

func TestSelfTestOverSSH(t *testing.T) {
	o := newOverSSH(t, 2)
	o.authorize()
	var stdout, stderr bytes.Buffer
	a := app{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, now: time.Now, version: "test"}
	status := runCommand(t.Context(), a, append([]string{
		"selftest", "-o", "json", "--identity", o.servers[0].KeyFile, "--known-hosts", filepath.Join(o.folder, "known_hosts"), "--node-program", o.node,
	}, o.hosts()...))
	var all []testedJSON
	if err := json.Unmarshal(stdout.Bytes(), &all); err != nil {
		t.Fatalf("%v: %s%s", err, stdout.String(), stderr.String())
	}
	if status != cli.ExitDone || len(all) != 2 {
		t.Fatalf("status %d: %s", status, stderr.String())
	}
	for _, x := range all {
		if x.Result == nil || x.Result.Passed == 0 || x.Result.Failed > 0 || strings.Contains(stdout.String(), "win-0") {
			t.Errorf("%s: %+v", x.Host, x)
		}
	}
}

func TestPreflightOverSSH(t *testing.T) {
	o := newOverSSH(t, 2)
	o.authorize()
	must(t, os.WriteFile(filepath.Join(o.servers[1].Root, folderhost.FileSystem), []byte(`{"fips": true, "ports": [{"number": 10250, "state": "taken"}]}`), 0o600))
	got := o.wmco(t, "preflight", append([]string{"-o", "json"}, o.hosts()...)...)
	var all []preflightJSON
	if err := json.Unmarshal([]byte(got.stdout), &all); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	if got.status != cli.ExitDiffers || len(all) != 2 {
		t.Fatalf("got %+v", got)
	}
	has := func(i int, reason string) bool {
		for _, f := range all[i].Findings {
			if f.Reason == reason {
				return true
			}
		}
		return false
	}
	if has(0, reason.PortTaken) || !has(1, reason.PortTaken) || !has(1, reason.FIPSEnabled) {
		t.Errorf("got %s", got.stdout)
	}
	if host, _, _ := net.SplitHostPort(o.servers[1].Address); all[1].Findings[0].Node != host {
		t.Errorf("the finding is about %q", all[1].Findings[0].Node)
	}
	if _, err := os.Stat(o.servers[0].Path(`C:\k\kubelet.conf`)); err == nil {
		t.Error("something was applied")
	}
}

func TestPreflightOfAHostThatIsOff(t *testing.T) {
	o := newOverSSH(t, 1)
	o.servers[0].Stop()
	got := o.wmco(t, "preflight", o.hosts()...)
	if got.status != cli.ExitUnreachable || !strings.Contains(got.stderr, "fix:") {
		t.Errorf("got %+v", got)
	}
}
