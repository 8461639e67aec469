package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/internal/cli"
)

// threeEnds are three hosts: the first works, the kubelet of the second does not start, the third is not reachable.
func threeEnds(t *testing.T) *overSSH {
	t.Helper()
	o := newOverSSH(t, 3)
	for _, s := range o.servers[1:] {
		s.Key = o.servers[0].Key
		s.Authorize()
	}
	script := `{"services": {"kubelet": {"start": "exits"}}}`
	must(t, os.WriteFile(filepath.Join(o.servers[1].Root, ".machine", "behaviour.json"), []byte(script), 0o600))
	o.servers[2].Stop()
	return o
}

// addresses are the hosts as answers name them.
func (o *overSSH) addresses() []string {
	return slices.DeleteFunc(o.hosts(), func(word string) bool { return word == "--host" })
}

// kinds returns the kinds of the events of each host in the output of `wmco apply -o json`, without repetitions.
func kinds(t *testing.T, stdout string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for line := range strings.Lines(stdout) {
		var failure failureJSON
		must(t, json.Unmarshal([]byte(line), &failure))
		kind := "failure"
		if failure.Error == "" {
			e, err := protocol.DecodeEvent([]byte(line))
			must(t, err)
			kind = string(e.Event)
		}
		if seen := all[failure.Host]; len(seen) == 0 || seen[len(seen)-1] != kind {
			all[failure.Host] = append(seen, kind)
		}
	}
	return all
}

func TestEventsNameTheirHost(t *testing.T) {
	o := threeEnds(t)
	got := o.wmco(t, "apply", append([]string{"-o", "json"}, o.hosts()...)...)
	if got.status != cli.ExitRolledBack {
		t.Errorf("status %d\n%s", got.status, got.stderr)
	}
	hosts := o.addresses()
	want := map[string][]string{
		hosts[0]: {"received", "plan", "action", "probe", "confirm", "result"},
		hosts[1]: {"received", "plan", "action", "rollback", "action", "result"},
		hosts[2]: {"failure"},
	}
	if diff := cmp.Diff(want, kinds(t, got.stdout)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// changing is what differs from run to run: the times of bars, and addresses.
var changing = regexp.MustCompile(`\[\d+[a-z0-9]*\].*|dial tcp [0-9.:]+: connect: `)

// watched runs apply on a terminal and returns the lines that stay on it, by host and sorted.
func (o *overSSH) watched(t *testing.T) (status int, kept []string) {
	t.Helper()
	x := newTerminal(t)
	a := app{stdin: x.program, stdout: io.Discard, stderr: x.program, now: time.Now, version: "test"}
	status = runCommand(t.Context(), a, o.line(append([]string{"apply", "--identity", o.servers[0].KeyFile}, o.hosts()...)))
	names := map[string]string{}
	for i, host := range o.addresses() {
		names[host] = fmt.Sprintf("win-%d", i)
	}
	for _, line := range lines(x.close()) {
		host, rest, _ := strings.Cut(line, " ")
		host, colon := strings.CutSuffix(host, ":")
		if name, ok := names[host]; ok && (colon || strings.Contains(rest, "...")) {
			kept = append(kept, strings.TrimSpace(name+" "+changing.ReplaceAllString(strings.ReplaceAll(rest, host, name), "")))
		}
	}
	slices.Sort(kept)
	return status, kept
}

func TestATerminalShowsTheResultOfEachHost(t *testing.T) {
	o := threeEnds(t)
	// The first contact prints lines about host keys.
	if got := o.wmco(t, "verify", o.hosts()...); got.status != cli.ExitUnreachable {
		t.Fatalf("status %d\n%s", got.status, got.stderr)
	}
	status, kept := o.watched(t)
	want := []string{
		"win-0  applied ... done!",
		"win-1  rolled back ... fail!",
		"win-1 rolled back: start service kubelet: starting service kubelet: the process terminated unexpectedly (Windows error 1067)",
		"win-2  connecting ... fail!",
		"win-2 connecting to win-2: connection refused",
	}
	if diff := cmp.Diff(want, kept); diff != "" || status != cli.ExitRolledBack {
		t.Errorf("status %d (-want +got):\n%s", status, diff)
	}
	for _, s := range o.servers {
		s.Stop()
	}
	if status, kept = o.watched(t); status != cli.ExitUnreachable || len(kept) != 6 {
		t.Errorf("without any host: status %d, %q", status, kept)
	}
}

// TestABarLeavesRoomForWhatAHostWaitsFor: at 80 columns, the service and the times are seen.
func TestABarLeavesRoomForWhatAHostWaitsFor(t *testing.T) {
	x := newTerminal(t)
	h := &host{target: remote.Target{User: "Administrator", Address: "192.0.2.13:22"}}
	s := newProgress(app{stdout: io.Discard, stderr: x.program, now: time.Now}, cli.Text, []*host{h})
	const text = "Administrator@192.0.2.13  waiting for kubelet: 1m20s of 2m"
	s.byHost[h.target].UpdateTotal(9)
	s.byHost[h.target].SetValue(8)
	s.byHost[h.target].UpdateMessage(text)
	for end := time.Now().Add(2 * time.Minute); !strings.Contains(x.text(), "["); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no bar is shown")
		}
	}
	s.end()
	if shown := x.close(); !strings.Contains(shown, text) {
		t.Errorf("the terminal shows %q", lines(shown))
	}
}
