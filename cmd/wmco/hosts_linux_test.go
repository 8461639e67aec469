package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/protocol"
	"wmco/applier/remote/ssh"
	"wmco/internal/cli"
	"wmco/internal/test/sshtest"
)

// authorize makes the key of the first host valid on all.
func (o *overSSH) authorize() {
	for _, s := range o.servers[1:] {
		s.Key = o.servers[0].Key
		s.Authorize()
	}
}

// report changes the facts that a host reports.
func report(t *testing.T, s *sshtest.Server, facts map[string]any) {
	t.Helper()
	path := filepath.Join(s.Root, ".machine", "facts.json")
	data, err := os.ReadFile(path)
	must(t, err)
	all := map[string]any{}
	must(t, json.Unmarshal(data, &all))
	maps.Copy(all, facts)
	data, err = json.Marshal(all)
	must(t, err)
	must(t, os.WriteFile(path, data, 0o600))
}

// silence ends a server, and accepts connections in its place without an answer, until the returned function is called or the
// test ends.
func silence(t *testing.T, s *sshtest.Server) (end func()) {
	t.Helper()
	s.Stop()
	listener, err := net.Listen("tcp", s.Address)
	must(t, err)
	var mu sync.Mutex
	var open []net.Conn
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
		}
	}()
	end = func() {
		_ = listener.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			_ = c.Close()
		}
	}
	t.Cleanup(end)
	return end
}

// watchedOutput is the output of a command, for a test that waits for a text.
type watchedOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
	want string
	seen func()
}

// Write implements io.Writer.
func (w *watchedOutput) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.text.Write(p)
	if w.seen != nil && strings.Contains(w.text.String(), w.want) {
		w.seen()
		w.seen = nil
	}
	return n, err
}

func (w *watchedOutput) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

func (o *overSSH) app(stdout, stderr io.Writer) app {
	return app{stdin: strings.NewReader(""), stdout: stdout, stderr: stderr, now: time.Now, version: "test"}
}

func TestASilentHostDoesNotDelayOthers(t *testing.T) {
	o := newOverSSH(t, 2)
	end := silence(t, o.servers[1])
	stdout := &watchedOutput{want: `"result":"applied"`}
	applied := make(chan struct{})
	stdout.seen = func() { close(applied) }
	done := make(chan int)
	go func() {
		args := append([]string{"apply", "--identity", o.servers[0].KeyFile, "-o", "json"}, o.hosts()...)
		a := o.app(stdout, io.Discard)
		a.limits = ssh.DefaultLimits()
		a.limits.Handshake = time.Hour // the silent host does not end the connection
		done <- runCommand(t.Context(), a, o.line(args))
	}()
	select {
	case <-applied:
	case <-time.After(5 * time.Minute):
		t.Error("a silent host delays the other")
	}
	end()
	if status := <-done; status != cli.ExitUnreachable {
		t.Errorf("status %d\n%s", status, stdout)
	}
}

func TestInvalidFactsRefuseOnlyTheirHost(t *testing.T) {
	o := newOverSSH(t, 3)
	o.authorize()
	report(t, o.servers[1], map[string]any{"dnsSuffix": "no name"})
	report(t, o.servers[2], map[string]any{"hostName": "stranger", "addresses": []string{"10.9.9.9"}})
	hosts := o.addresses()

	applied := o.wmco(t, "apply", append([]string{"-o", "json"}, o.hosts()...)...)
	ends := kinds(t, applied.stdout)
	if applied.status != cli.ExitUsage || !slices.Contains(ends[hosts[0]], "result") || !cmp.Equal(ends[hosts[1]], []string{"failure"}) || !slices.Contains(ends[hosts[2]], "result") {
		t.Errorf("status %d, %v\n%s", applied.status, ends, applied.stderr)
	}
	if _, err := os.Stat(o.servers[1].Path(`C:\k\kubelet.conf`)); err == nil {
		t.Error("a refused host was written to")
	}
	facts := filepath.Join(o.folder, "win-1.json") // what it was created with
	if got := o.wmco(t, "verify", append([]string{"--facts", facts}, o.hosts()[2:4]...)...); got.status != cli.ExitDiffers || strings.Contains(got.stderr, "Facts") {
		t.Errorf("with --facts: status %d\n%s", got.status, got.stderr)
	}
	for _, command := range []string{"verify", "diff"} {
		got := o.wmco(t, command, append([]string{"-o", "json"}, o.hosts()...)...)
		var answer []comparedJSON
		must(t, json.Unmarshal([]byte(got.stdout), &answer))
		var found []string
		for _, c := range answer {
			for _, f := range c.Findings {
				if strings.HasPrefix(f.Reason, "Facts") {
					found = append(found, c.Host+" "+f.Reason)
				}
			}
		}
		want := []string{hosts[1] + " FactsInvalid", hosts[2] + " FactsUnmatched", hosts[2] + " FactsUnknown"}
		if diff := cmp.Diff(want, found); diff != "" || got.status != cli.ExitUsage {
			t.Errorf("%s: status %d (-want +got):\n%s", command, got.status, diff)
		}
	}
}

// The bundle of a node is never applied to another host, which would get the identity of the node.
func TestABundleIsNotAppliedToAnotherHost(t *testing.T) {
	o := newOverSSH(t, 1)
	o.authorize()
	host, _, _ := net.SplitHostPort(o.servers[0].Address)
	machines, err := os.ReadFile(filepath.Join(o.folder, "machines.yaml"))
	must(t, err)
	o.write(t, "machines.yaml", string(machines)+"---\napiVersion: v1\nkind: Node\nmetadata:\n  name: win-0\n  labels: {kubernetes.io/os: windows, node.openshift.io/os_id: Windows}\n"+
		"status:\n  addresses:\n  - {type: InternalIP, address: "+host+"}\n")
	report(t, o.servers[0], map[string]any{"addresses": []string{"10.9.9.9"}, "hostName": "stranger"})
	got := o.wmco(t, "apply", o.hosts()...)
	if got.status != cli.ExitUsage || !strings.Contains(got.stderr, "FactsUnmatched") {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	if _, err := os.Stat(o.servers[0].Path(`C:\k\kubelet.conf`)); err == nil {
		t.Error("it was written to")
	}
}

// A host that is a node refuses to join again by inputs that lack its Node, unless the node is named.
func TestANodeIsNotMadeToJoin(t *testing.T) {
	o := newOverSSH(t, 1)
	o.authorize()
	host, _, _ := net.SplitHostPort(o.servers[0].Address)
	machines, err := os.ReadFile(filepath.Join(o.folder, "machines.yaml"))
	must(t, err)
	o.write(t, "machines.yaml", string(machines)+"---\napiVersion: v1\nkind: Node\nmetadata:\n  name: win-0\n  labels: {kubernetes.io/os: windows, node.openshift.io/os_id: Windows}\n"+
		"status:\n  addresses:\n  - {type: InternalIP, address: "+host+"}\n")
	if got := o.wmco(t, "apply", o.hosts()...); got.status != cli.ExitDone {
		t.Fatalf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	o.write(t, "machines.yaml", string(machines))
	got := o.wmco(t, "apply", o.hosts()...)
	if got.status != cli.ExitUsage || !strings.Contains(got.stderr, "this host is node win-0") || !strings.Contains(got.stderr, "apply with --reset win-0") {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	if got := o.wmco(t, "apply", append(o.hosts(), "--reset", "win-0")...); got.status != cli.ExitDone {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
}

// Without facts, the bundle of a node lacks its network.
func TestABundleWithoutFactsIsNotAppliedToANode(t *testing.T) {
	o := newOverSSH(t, 1)
	host, _, _ := net.SplitHostPort(o.servers[0].Address)
	node := o.write(t, "node.yaml", "apiVersion: v1\nkind: Node\nmetadata:\n  name: win-0\n  labels: {kubernetes.io/os: windows, node.openshift.io/os_id: Windows}\n"+
		"status:\n  addresses:\n  - {type: InternalIP, address: "+host+"}\n")
	facts := o.write(t, "other.json", `{"schema":1,"hostName":"other","addresses":["10.9.9.9"],"osBuild":"10.0.20348"}`)
	for _, command := range []string{"apply", "verify", "diff"} {
		got := o.wmco(t, command, append([]string{"--from", node, "--facts", facts}, o.hosts()...)...)
		if got.status != cli.ExitUsage || !strings.Contains(got.stderr, "would remove from its host what the facts decide: give them with --facts; without --facts, the host is asked") {
			t.Errorf("%s: status %d\n%s%s", command, got.status, got.stdout, got.stderr)
		}
	}
	if exists(o.servers[0].Path(`C:\k\kubelet.conf`)) {
		t.Error("it was written to")
	}
	if got := o.wmco(t, "apply", append([]string{"--from", node}, o.hosts()...)...); got.status != cli.ExitDone {
		t.Errorf("asked for its facts: status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
}

func TestFindingsAreAboutNamedHostsOnly(t *testing.T) {
	o := newOverSSH(t, 2)
	o.authorize()
	other, _, _ := net.SplitHostPort(o.servers[1].Address)
	more := o.write(t, "instances.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: windows-instances\n  namespace: openshift-windows-machine-config-operator\ndata:\n"+
		"  10.77.0.1: nobody\n  10.77.0.2: username=Administrator\n")
	report(t, o.servers[0], map[string]any{"addresses": []string{"10.9.9.9"}, "hostName": "stranger"})
	for _, line := range [][]string{
		{"apply", "--dry-run"}, {"apply", "--dry-run", "-o", "json"}, {"verify"}, {"verify", "-o", "json"}, {"diff"}, {"diff", "-o", "json"},
	} {
		got := o.wmco(t, line[0], slices.Concat(line[1:], []string{"--from", more}, o.hosts()[:2])...)
		if !strings.Contains(got.stderr, "FactsUnmatched") {
			t.Errorf("%v: a finding is lost\n%s", line, got.stderr)
		}
		if all := got.stdout + got.stderr; strings.Contains(all, "10.77.0.") || strings.Contains(all, other) {
			t.Errorf("%v: has findings about other hosts\n%s", line, all)
		}
		if strings.HasSuffix(strings.Join(line, " "), "json") && strings.Contains(got.stdout, "         fix:") {
			t.Errorf("%v: findings for people on stdout\n%s", line, got.stdout)
		}
	}
}

func TestComparingWritesNothingToAHostWithoutTheNodeAgent(t *testing.T) {
	o := newOverSSH(t, 1)
	agents := filepath.Dir(o.servers[0].Path(`C:\Windows\wmco\x`))
	for _, command := range []string{"verify", "diff"} {
		must(t, os.RemoveAll(agents))
		got := o.wmco(t, command, o.hosts()...)
		want := " is not on " + o.addresses()[0] + ", and nothing was copied there"
		if got.status != cli.ExitUnreachable || !strings.Contains(got.stderr, want) || !strings.Contains(got.stderr, "fix: let the command copy it with --install") {
			t.Errorf("%s: status %d, want %q\n%s%s", command, got.status, want, got.stdout, got.stderr)
		}
		if exists(agents) {
			t.Errorf("%s: the folder of the node agent was made", command)
		}
		got = o.wmco(t, command, append([]string{"--install"}, o.hosts()...)...)
		if got.status != cli.ExitDiffers || !exists(agents) {
			t.Errorf("%s --install: status %d\n%s%s", command, got.status, got.stdout, got.stderr)
		}
		if got = o.wmco(t, command, o.hosts()...); got.status != cli.ExitDiffers {
			t.Errorf("%s afterwards: status %d\n%s%s", command, got.status, got.stdout, got.stderr)
		}
	}
}

func TestRefusedInputsChangeNoHost(t *testing.T) {
	o := newOverSSH(t, 1)
	starts := len(o.servers[0].Starts())
	bad := o.write(t, "settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: windows-machine-config\n  namespace: openshift-windows-machine-config-operator\ndata:\n  config.yaml: |\n    nonsense: true\n")
	got := o.wmco(t, "apply", append([]string{"--from", bad}, o.hosts()...)...)
	if got.status != cli.ExitUsage || !strings.Contains(got.stderr, "no host is changed") || !strings.Contains(got.stderr, "nonsense") {
		t.Errorf("status %d\n%s", got.status, got.stderr)
	}
	if now := len(o.servers[0].Starts()); now != starts {
		t.Errorf("%d commands ran on the host", now-starts)
	}
}

// TestInputsForPreviewsChangeNoHost: a stand-in must never replace a secret that works, and a cluster of another version is
// applied to only if the user allows it.
func TestInputsForPreviewsChangeNoHost(t *testing.T) {
	o := newOverSSH(t, 1)
	o.authorize()
	object := func(kind, namespace, name, rest string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata: {namespace: %s, name: %s}\n%s\n", kind, namespace, name, rest)
	}
	for i, tt := range []struct{ name, object, want string }{
		{"a token that a must-gather elided", object("Secret", "openshift-machine-config-operator", "node-bootstrapper-token", "stringData: {token: 36 bytes long, ca.crt: 1 bytes long}"), "stand-ins would replace secrets"},
		{"a pull secret without its key", object("Secret", "openshift-config", "pull-secret", "data: {}"), "stand-ins would replace secrets"},
		{"a proxy whose password is masked", "apiVersion: config.openshift.io/v1\nkind: Proxy\nmetadata: {name: cluster}\nstatus: {httpProxy: 'http://user:****@proxy.example.com:3128'}\n", "stand-ins would replace secrets"},
		{"a cluster of another version", "apiVersion: config.openshift.io/v1\nkind: ClusterVersion\nmetadata: {name: version}\nstatus: {desired: {version: 4.25.0}}\n", "--allow-unsupported-version"},
	} {
		from := o.write(t, fmt.Sprintf("change-%d.yaml", i), tt.object)
		for _, more := range [][]string{nil, {"--dry-run"}} {
			starts := len(o.servers[0].Starts())
			got := o.wmco(t, "apply", slices.Concat([]string{"--from", from}, more, o.hosts())...)
			if got.status != cli.ExitUsage || !strings.Contains(got.stderr, tt.want) || !strings.Contains(got.stderr, "no host is changed") {
				t.Errorf("%s %v: status %d\n%s", tt.name, more, got.status, got.stderr)
			}
			if now := len(o.servers[0].Starts()); now != starts {
				t.Errorf("%s: %d commands ran on the host", tt.name, now-starts)
			}
		}
		if got := o.wmco(t, "diff", slices.Concat([]string{"--from", from, "--install"}, o.hosts())...); got.status != cli.ExitDiffers {
			t.Errorf("%s: diff has status %d\n%s", tt.name, got.status, got.stderr)
		}
	}
	version := filepath.Join(o.folder, "change-3.yaml")
	if got := o.wmco(t, "apply", slices.Concat([]string{"--from", version, "--allow-unsupported-version"}, o.hosts())...); got.status != cli.ExitDone {
		t.Errorf("an accepted version: status %d\n%s\n%s", got.status, got.stdout, got.stderr)
	}
}

func TestAnInterruptedCommandSaysThatNothingChanged(t *testing.T) {
	o := newOverSSH(t, 1)
	silence(t, o.servers[0])
	for _, command := range []string{"apply", "verify", "diff"} {
		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, interrupt)
		var stderr bytes.Buffer
		args := append([]string{command, "--identity", o.servers[0].KeyFile}, o.hosts()...)
		status := runCommand(ctx, o.app(io.Discard, &stderr), o.line(args))
		if status != cli.ExitInterrupted || !strings.HasSuffix(stderr.String(), "wmco: interrupted, no host was changed\n") {
			t.Errorf("%s: status %d\n%s", command, status, &stderr)
		}
	}
}

func TestTheResultNamesRebootsOfHosts(t *testing.T) {
	o := newOverSSH(t, 2)
	o.authorize()
	for _, s := range o.servers {
		must(t, os.Remove(filepath.Join(s.Root, ".machine", "features.json"))) // Containers is off
	}
	for i, want := range []struct {
		flags []string
		text  string
	}{
		{nil, "waits for a reboot: reboot it and apply again"},
		{[]string{"--reboot"}, "rebooting: apply again when it is back"},
	} {
		got := o.wmco(t, "apply", append(want.flags, o.hosts()[2*i:2*i+2]...)...)
		if got.status != cli.ExitPartial || !strings.Contains(got.stdout, want.text) {
			t.Errorf("%v: status %d\n%s\n%s", want.flags, got.status, got.stdout, got.stderr)
		}
	}
}

func TestEachFailedHostHasAFix(t *testing.T) {
	o := threeEnds(t)
	got := o.wmco(t, "apply", o.hosts()...)
	want := "\n" + o.addresses()[1] + ": rolled back: start service kubelet: starting service kubelet: the process terminated unexpectedly (Windows error 1067)\n" +
		`  fix: read the log of the service under C:\var\log on the host, fix the inputs and apply again` + "\n" + o.addresses()[2] + ": connecting to"
	if !strings.Contains(got.stderr, want) {
		t.Errorf("want %s\ngot %s", want, got.stderr)
	}
	must(t, os.WriteFile(o.servers[0].Path(`C:\k\kubelet.conf`), nil, 0o600))
	got = o.wmco(t, "apply", append([]string{"--max-impact", "none"}, o.hosts()[:2]...)...)
	want = ": the plan has impact restart, and at most none is allowed\n  fix: allow it with --max-impact restart\n"
	if got.status != cli.ExitUsage || !strings.HasSuffix(got.stderr, want) {
		t.Errorf("status %d, want %s\ngot %s", got.status, want, got.stderr)
	}
}

// door forwards connections to a server. While it is shut, new connections are refused and existing ones stay.
type door struct {
	t       *testing.T
	to      string
	address string

	mu       sync.Mutex
	listener net.Listener
}

func newDoor(t *testing.T, to string) *door {
	t.Helper()
	d := &door{t: t, to: to, address: "127.0.0.1:0"}
	d.open()
	d.address = d.listener.Addr().String()
	t.Cleanup(d.shut)
	return d
}

func (d *door) open() {
	listener, err := net.Listen("tcp", d.address)
	if err != nil {
		d.t.Error(err)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listener = listener
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go d.lead(c)
		}
	}()
}

func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.listener.Close() // it may be shut
}

func (d *door) lead(c net.Conn) {
	defer func() { _ = c.Close() }()
	server, err := net.Dial("tcp", d.to)
	if err != nil {
		return
	}
	go func() { _, _ = io.Copy(server, c) }()
	_, _ = io.Copy(c, server)
}

func TestConfirmingIsRetried(t *testing.T) {
	o := newOverSSH(t, 1)
	d := newDoor(t, o.servers[0].Address)
	stderr := &watchedOutput{want: "reconnecting to confirm"}
	stderr.seen = func() {
		d.shut()
		time.AfterFunc(3*time.Second, d.open)
	}
	host, _, _ := net.SplitHostPort(o.servers[0].Address)
	var stdout bytes.Buffer
	status := runCommand(t.Context(), o.app(&stdout, stderr), o.line([]string{
		"apply", "--identity", o.servers[0].KeyFile, "--confirm-within", "30s", "--instance", host, "--host", o.servers[0].User + "@" + d.address,
	}))
	if status != cli.ExitDone || !strings.Contains(stdout.String(), string(protocol.ResultApplied)) {
		t.Errorf("status %d\n%s\n%s", status, &stdout, stderr)
	}
	if n := strings.Count(stderr.String(), "confirming, retried every second: "); n != 1 || !strings.Contains(stderr.String(), "; fix: check the address, that the host is running") {
		t.Errorf("printed %d times\n%s", n, stderr)
	}
}
