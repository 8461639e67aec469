package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"wmco/applier/protocol"
	"wmco/internal/cli"
	"wmco/internal/test/sshtest"
	"wmco/payload"
)

// overSSH are simulated hosts behind SSH servers, and a cluster with these as Machines: instances have no loopback addresses.
type overSSH struct {
	servers []*sshtest.Server
	node    string
	folder  string
}

// built are the programs that servers need, and the node agent. They are built for the first test that needs them.
type built struct {
	sshtest.Programs
	node string

	once sync.Once
	err  error
}

var programs built

// get builds them, unless that is done.
func (b *built) get() error {
	b.once.Do(func() {
		if b.Programs, b.err = sshtest.Build(context.Background()); b.err == nil {
			b.node, b.err = b.Go(context.Background(), "wmco/cmd/wmco-node")
		}
	})
	return b.err
}

// tidy runs the tests and removes what they built.
type tidy struct{ *testing.M }

// Run implements testscript.TestingM.
func (t tidy) Run() int {
	status := t.M.Run()
	if programs.node != "" {
		_ = programs.Remove() // a folder for temporary files
	}
	return status
}

func TestMain(m *testing.M) {
	testscript.Main(tidy{m}, map[string]func(){"wmco": main})
}

func newOverSSH(t *testing.T, count int) *overSSH {
	t.Helper()
	must(t, programs.get())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir()) // what wmco keeps for its next run
	o := &overSSH{folder: t.TempDir(), node: programs.node}
	machines := ""
	for i := range count {
		s := programs.Start(t, sshtest.Options{})
		host, _, _ := net.SplitHostPort(s.Address)
		o.create(t, s, fmt.Sprintf("win-%d", i), host)
		machines += fmt.Sprintf("---\napiVersion: machine.openshift.io/v1beta1\nkind: Machine\nmetadata:\n  name: m-%d\n  namespace: openshift-machine-api\n"+
			"  labels: {machine.openshift.io/os-id: Windows}\nstatus:\n  addresses:\n  - {type: InternalIP, address: %s}\n", i, host)
		o.servers = append(o.servers, s)
	}
	o.write(t, "machines.yaml", machines)
	return o
}

func (o *overSSH) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(o.folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (o *overSSH) create(t *testing.T, s *sshtest.Server, name, address string) {
	t.Helper()
	facts := o.write(t, name+".json", fmt.Sprintf(`{"schema":1,"hostName":%q,"addresses":[%q],"osBuild":"10.0.20348","defenderRunning":true,"features":["Containers"],"defaultRoute":{"address":%q,"gateway":"10.0.0.1"}}`, name, address, address))
	out, err := exec.CommandContext(t.Context(), o.node, "--root", s.Root, "machine", "create", "--facts", facts).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// Without --payload, executables are expected to be there.
	for _, e := range payload.ProgramsFor(payload.TestedKubernetes) {
		must(t, os.MkdirAll(filepath.Dir(s.Path(e.Path)), 0o755))
		must(t, os.WriteFile(s.Path(e.Path), []byte(e.Name), 0o600))
	}
}

// answer is what one command line gave.
type answer struct {
	status         int
	stdout, stderr string
}

// wmco runs a command line for the cluster, with the key of the first host.
func (o *overSSH) wmco(t *testing.T, command string, args ...string) answer {
	t.Helper()
	return o.run(t, strings.NewReader(""), append([]string{command, "--identity", o.servers[0].KeyFile}, args...))
}

// run runs a command line for the cluster, with the keys that it names.
func (o *overSSH) run(t *testing.T, stdin io.Reader, line []string) answer {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := app{stdin: stdin, stdout: &stdout, stderr: &stderr, now: time.Now, version: "test"}
	status := runCommand(t.Context(), a, o.line(line))
	return answer{status, stdout.String(), stderr.String()}
}

// line is a command line with the inputs of the cluster before its flags, which win.
func (o *overSSH) line(line []string) []string {
	golden := filepath.Join("..", "..", "golden", "clusters")
	inputs := []string{
		"--from", filepath.Join(golden, "common"), "--from", filepath.Join(golden, "none", "infrastructure.yaml"),
		"--from", filepath.Join(golden, "none", "controllerconfig.yaml"), "--from", filepath.Join(golden, "none", "machineconfigs.yaml"),
		"--from", filepath.Join(o.folder, "machines.yaml"), "--known-hosts", filepath.Join(o.folder, "known_hosts"), "--node-program", o.node,
	}
	return slices.Concat(line[:1], inputs, line[1:])
}

func (o *overSSH) hosts() []string {
	var all []string
	for _, s := range o.servers {
		all = append(all, "--host", s.User+"@"+s.Address)
	}
	return all
}

func TestApplyVerifyAndDiffOverSSH(t *testing.T) {
	o := newOverSSH(t, 1)
	for _, step := range []struct {
		what    string
		command string
		args    []string
		do      func()
		status  int
	}{
		{"before anything", "diff", []string{"--install"}, nil, cli.ExitDiffers},
		{"a dry run", "apply", []string{"--dry-run"}, nil, cli.ExitDone},
		{"it changed nothing", "verify", nil, nil, cli.ExitDiffers},
		{"for real", "apply", nil, nil, cli.ExitDone},
		{"nothing differs", "diff", nil, nil, cli.ExitDone},
		{"healthy", "verify", nil, nil, cli.ExitDone},
		{"again", "apply", []string{"-o", "json"}, nil, cli.ExitDone},
		{"somebody edits a file", "verify", nil, func() { must(t, os.WriteFile(o.servers[0].Path(`C:\k\kubelet-ca.crt`), nil, 0o600)) }, cli.ExitDiffers},
		{"repaired", "apply", nil, nil, cli.ExitDone},
		{"too costly", "apply", []string{"--max-impact", "none"}, func() { must(t, os.WriteFile(o.servers[0].Path(`C:\k\kubelet.conf`), nil, 0o600)) }, cli.ExitUsage},
		{"allowed", "apply", []string{"--max-impact", "restart"}, nil, cli.ExitDone},
		{"another key of the host", "apply", nil, func() { o.servers[0].NewHostKeys(); o.servers[0].Restart() }, cli.ExitUnreachable},
		{"the server is gone", "verify", nil, o.servers[0].Stop, cli.ExitUnreachable},
	} {
		if step.do != nil {
			step.do()
		}
		got := o.wmco(t, step.command, append(step.args, o.hosts()...)...)
		if got.status != step.status {
			t.Fatalf("%s: status %d, want %d\n%s\n%s", step.what, got.status, step.status, got.stdout, got.stderr)
		}
		t.Logf("%s\n%s%s", step.what, got.stdout, got.stderr)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestHostsThatFailDoNotStopOthers(t *testing.T) {
	o := newOverSSH(t, 3)
	// Each server has its own key; only that of the first is given.
	got := o.wmco(t, "apply", append([]string{"-o", "json"}, o.hosts()...)...)
	if got.status != cli.ExitUnreachable {
		t.Errorf("status %d\n%s", got.status, got.stderr)
	}
	ends := map[string]string{}
	for line := range strings.Lines(got.stdout) {
		var e struct {
			Host, Error, Fix string
			Result           protocol.Result
		}
		must(t, json.Unmarshal([]byte(line), &e))
		switch {
		case e.Error != "" && e.Fix != "":
			ends[e.Host] = "failed, with a fix"
		case e.Result != "":
			ends[e.Host] = string(e.Result)
		}
	}
	for i, s := range o.servers {
		want := "failed, with a fix"
		if i == 0 {
			want = "applied"
		}
		if host := s.User + "@" + s.Address; ends[host] != want {
			t.Errorf("%s: %q, want %q", host, ends[host], want)
		}
	}
}

func TestInvalidFlagsAreRefused(t *testing.T) {
	o := newOverSSH(t, 1)
	host := o.servers[0].User + "@" + o.servers[0].Address
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "name the hosts with --host"},
		{[]string{"--host", "a b"}, "is not an address"},
		{[]string{"--host", host, "--host", host}, "named twice"},
		{[]string{"--host", host, "--host", "10.0.0.1", "--node", "x"}, "go with one --host"},
		{[]string{"--host", host, "--max-impact", "much"}, "none, restart, drain or reboot"},
		{[]string{"--host", host, "--identity", "/nowhere"}, "reading --identity"},
		{[]string{"--host", host, "--node-program", "/nowhere"}, "reading the node agent"},
		{[]string{"--host", host, "--instance", "10.9.9.9"}, "no Windows host of the inputs has this name or address: 10.9.9.9"},
		{[]string{"--host", "ssh://" + host}, "--host ssh://" + host + ": write [USER@]ADDR[:PORT], without a scheme"},
		{[]string{"--host", host, "--parallel", "0"}, "--parallel 0: must be at least 1"},
		{[]string{"--host", host, "--confirm-within", "-1s"}, "--confirm-within -1s: must not be negative"},
		{[]string{"--host", host, "--known-hosts", o.folder}, "is a directory; fix or remove this line, or give another file with --known-hosts"},
		{[]string{"--host", host, "--known-hosts", o.write(t, "torn", "127.0.0.1 ssh-ed25519 AAAA\n")}, "torn:1: "},
	} {
		got := o.wmco(t, "apply", tt.args...)
		if got.status != cli.ExitUsage || !strings.Contains(got.stderr, tt.want) {
			t.Errorf("%v: status %d, %q", tt.args, got.status, got.stderr)
		}
	}
}
