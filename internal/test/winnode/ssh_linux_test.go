package winnode

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"wmco/applier/ownfile"
	"wmco/applier/protocol"
	"wmco/applier/remote"
	remotessh "wmco/applier/remote/ssh"
	"wmco/bundle"
	"wmco/internal/cli"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/test/seed"
	"wmco/internal/test/sshtest"
	"wmco/internal/test/sshtest/sshd"
	"wmco/internal/test/winetest"
	"wmco/internal/test/winnode/stub"
)

// The SSH server on a host (testdata/sshd), with its files.
const (
	sshServer     = `C:\users\sshd\sshd.exe`
	sshHostKey    = `C:\users\sshd\host`
	sshAuthorized = `C:\users\sshd\authorized`
)

// reached is a host that is reached over SSH, through a line that can be cut.
type reached struct {
	machine
	host    string
	line    *sshtest.Line
	dialer  remotessh.Dialer
	program remote.Program
	server  *winetest.Process
	// read is the number of lines of the server that were checked.
	read int
}

// reach starts an SSH server on a new host in the network of this computer, at a separate loopback address.
func reach(t *testing.T) *reached {
	t.Helper()
	m := machineOf(t, winetest.New(t))
	m.Tripwires(t)
	key := newKey(t)
	m.WriteFile(t, sshServer, build(t).sshd)
	m.WriteFile(t, sshAuthorized, ssh.MarshalAuthorizedKey(signer(t, key).PublicKey()))
	m.WriteFile(t, sshHostKey, inFile(t, newKey(t)))
	r := &reached{machine: m, host: sshd.Loopback(), read: 1, program: agent(t)}
	r.server = m.Start(t, winetest.Command{Path: sshServer, Args: []string{r.host + ":0", sshHostKey, sshAuthorized}})
	address := ""
	eventually(t, "the SSH server listens", func() bool {
		line, whole := strings.CutSuffix(r.server.Output(t), "\n")
		address = strings.TrimPrefix(line, "listens ")
		return whole
	})
	r.line = sshtest.NewLine(t, address, sshtest.LineOptions{})
	r.dialer = remotessh.Dialer{
		Limits:  remotessh.DefaultLimits(),
		Pins:    remotessh.NewKnownHosts(filepath.Join(t.TempDir(), "known_hosts")),
		Signers: keys(signer(t, key)),
	}
	return r
}

// agent returns the node agent, as the client uploads it.
func agent(t *testing.T) remote.Program {
	t.Helper()
	file := filepath.Join(t.TempDir(), "wmco-node.exe")
	if err := os.WriteFile(file, build(t).node, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := remote.FileProgram(file)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return private
}

func signer(t *testing.T, key ed25519.PrivateKey) ssh.Signer {
	t.Helper()
	s, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func keys(all ...ssh.Signer) func(context.Context) ([]ssh.Signer, error) {
	return func(context.Context) ([]ssh.Signer, error) { return all, nil }
}

// inFile returns the key in the format of OpenSSH.
func inFile(t *testing.T, key ed25519.PrivateKey) []byte {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block)
}

// over applies with a new connection.
func (r *reached) over(t *testing.T, n bundletest.Node, report func(protocol.Event)) (protocol.Event, error) {
	t.Helper()
	c := remote.NewClient(remotessh.NewTransport(r.dialer), r.program, remote.DefaultLimits())
	defer c.Close()
	return r.by(t, c, n, report)
}

func (r *reached) by(t *testing.T, c *remote.Client, n bundletest.Node, report func(protocol.Event)) (protocol.Event, error) {
	t.Helper()
	manifest, source := n.Contents(t)
	to := remote.Target{User: remote.DefaultUser, Address: r.line.Address}
	return c.AgentFor(to).Apply(t.Context(), remote.Request{Manifest: manifest, Source: source}, remote.ApplyOptions{Wait: time.Minute}, report)
}

// asked returns the requests to the server since the last call: the status and the arguments of each command.
func (r *reached) asked(t *testing.T) []string {
	t.Helper()
	program := strings.ReplaceAll(r.program.Path, `\`, `\\`) + " "
	lines := strings.Split(strings.TrimSpace(r.server.Output(t)), "\n")
	var fresh []string
	for _, line := range lines[r.read:] {
		line, _, _ = strings.Cut(line, " "+ownfile.Flag+" ")
		fresh = append(fresh, strings.Replace(line, program, "", 1))
	}
	r.read = len(lines)
	return fresh
}

func ignore(protocol.Event) {}

// TestANodeOverSSH runs the client against the node agent, through cmd.exe and SFTP on Windows.
func TestANodeOverSSH(t *testing.T) {
	t.Parallel()
	r := reach(t)
	n := nodeAt(t, r.host)
	n.Programs[`C:\k\agent\wmco-node-`+r.program.Digest.Short()+".exe"] = string(build(t).node)
	for _, c := range []struct {
		name string
		run  func(*testing.T, *reached, bundletest.Node)
	}{
		{"first contact uploads the program and applies", meets},
		{"the second run is one command", again},
		{"a damaged program refuses itself and is replaced", damagedProgram},
		{"one file more is two commands, and nothing restarts", oneFile},
		{"a kept connection costs one command, or two for a change", kept},
		{"interrupted uploads are resumed", interruptedUploads},
		{"another key is refused", otherUserKey},
		{"another host key is refused", otherHostKey},
	} {
		if !t.Run(c.name, func(t *testing.T) { c.run(t, r, n) }) {
			t.FailNow()
		}
	}
	if tripped := r.Tripped(t); tripped != nil {
		t.Errorf("forbidden programs were run: %q", tripped)
	}
}

// nodeAt is newNode with services that listen at an address that no other host uses.
func nodeAt(t *testing.T, host string) bundletest.Node {
	t.Helper()
	n := newNode(t)
	metrics := host + ":9182"
	n.Programs[pathKubelet] = kubeletAt(t, kubeletOf(host), "v1")
	n.Programs[pathExporter] = stand(t, stub.Behaviour{TCP: []string{metrics}})
	n.Services[1].Probe.Target = "http://" + kubeletOf(host) + "/healthz"
	n.Services[2].Probe.Target = metrics
	return n
}

// kubeletOf returns the address of the kubelet of such a node.
func kubeletOf(host string) string { return host + ":10248" }

func meets(t *testing.T, r *reached, n bundletest.Node) {
	received := map[bundle.Digest]bool{}
	e, err := r.over(t, n, func(e protocol.Event) { received[e.Content] = true })
	if err != nil || e.Result != protocol.ResultApplied || e.Restarted != len(n.Services) {
		t.Fatalf("%+v, %v", e, err)
	}
	want := []string{"sftp", "0 version", "1 observe", "0 apply --wait 1m0s"}
	asked := r.asked(t)
	// The first command finds no program: what cmd.exe returns then is not the agent's.
	if len(asked) == 0 || !strings.HasSuffix(asked[0], " observe") {
		t.Fatalf("asked: %q", asked)
	}
	if diff := cmp.Diff(want, asked[1:]); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	// Wine's folder has this name, and Linux distinguishes case.
	if string(r.ReadFile(t, strings.Replace(r.program.Path, "Windows", "windows", 1))) != string(build(t).node) {
		t.Error("the uploaded program differs")
	}
	if !received[bundle.Of([]byte(n.Programs[pathKubelet]))] {
		t.Errorf("a content was not sent: %v", received)
	}
	r.matches(t, n)
}

// matches fails the test if the host differs from the bundle.
func (r *reached) matches(t *testing.T, n bundletest.Node) {
	t.Helper()
	if v := r.wmco(t, n.Archive(t, nil), "verify"); v.ExitCode != 0 {
		t.Errorf("the host differs from the bundle: %+v", v)
	}
	if left := r.leftovers(t); len(left) > 0 {
		t.Errorf("leftovers: %q", left)
	}
}

func again(t *testing.T, r *reached, n bundletest.Node) {
	before, starts := r.writes(t), r.starts(t)
	e, err := r.over(t, n, ignore)
	if err != nil || e.Result != protocol.ResultSame {
		t.Errorf("%+v, %v", e, err)
	}
	if diff := cmp.Diff([]string{"0 observe"}, r.asked(t)); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, r.writes(t)); diff != "" {
		t.Errorf("written (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(starts, r.starts(t)); diff != "" {
		t.Errorf("started (-before +after):\n%s", diff)
	}
}

// damagedProgram changes one byte of the program on the host, or what Windows needs to start it. It reads and does nothing, and the next
// command replaces it.
func damagedProgram(t *testing.T, r *reached, n bundletest.Node) {
	path := strings.Replace(r.program.Path, "Windows", "windows", 1) // as in meets
	whole := build(t).node
	for what, damage := range map[string]func([]byte) []byte{
		"a changed byte":      func(data []byte) []byte { data[len(data)-1] ^= 1; return data },
		"half of it":          func(data []byte) []byte { return data[:len(data)/2] },
		"zeros of its size":   func(data []byte) []byte { return make([]byte, len(data)) },
		"zeros in its middle": func(data []byte) []byte { clear(data[len(data)/2:][:4096]); return data },
	} {
		before := r.writes(t)
		r.WriteFile(t, path, damage(slices.Clone(whole)))
		if what == "a changed byte" {
			if v := r.Run(t, winetest.Command{Path: r.program.Path, Args: []string{"cleanup"}}); v.ExitCode != cli.ExitDamaged {
				t.Errorf("%s: it ended with %d: %+v", what, v.ExitCode, v)
			}
		}
		if e, err := r.over(t, n, ignore); err != nil || e.Result != protocol.ResultSame {
			t.Errorf("%s: %+v, %v", what, e, err)
		}
		asked := r.asked(t)
		if len(asked) != 4 || !strings.HasSuffix(asked[0], " observe") || cmp.Diff([]string{"sftp", "0 version", "0 observe"}, asked[1:]) != "" {
			t.Errorf("%s: asked %q", what, asked)
		}
		if string(r.ReadFile(t, path)) != string(whole) {
			t.Errorf("%s: it was not replaced", what)
		}
		if diff := cmp.Diff(before, r.writes(t)); diff != "" {
			t.Errorf("%s: written (-before +after):\n%s", what, diff)
		}
	}
}

func oneFile(t *testing.T, r *reached, n bundletest.Node) {
	starts := r.starts(t)
	changed := n.Changed(func(n *bundletest.Node) { n.Files[pathMirror] = "server = \"https://b.io\"\n" })
	e, err := r.over(t, changed, ignore)
	if err != nil || e.Result != protocol.ResultApplied || e.Written != 1 || e.Restarted != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	if diff := cmp.Diff([]string{"1 observe", "0 apply --wait 1m0s"}, r.asked(t)); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(starts, r.starts(t)); diff != "" {
		t.Errorf("started (-before +after):\n%s", diff)
	}
	r.matches(t, changed)
}

// keptChanges is how often a mirror changes while one client is connected.
const keptChanges = 4

func kept(t *testing.T, r *reached, n bundletest.Node) {
	c := remote.NewClient(remotessh.NewTransport(r.dialer), r.program, remote.DefaultLimits())
	defer c.Close()
	starts := r.starts(t)
	r.line.Stats()
	var last bundletest.Node
	var want []string
	for i := range keptChanges {
		last = n.Changed(func(n *bundletest.Node) {
			n.Files[pathMirror] = fmt.Sprintf("server = \"https://c%d.io\"\r\n\x1a\n", i)
		})
		for _, want := range []protocol.Event{{Result: protocol.ResultApplied, Written: 1}, {Result: protocol.ResultSame}} {
			if e, err := r.by(t, c, last, ignore); err != nil || e.Result != want.Result || e.Written != want.Written || e.Restarted != 0 {
				t.Fatalf("%d: %+v, %v", i, e, err)
			}
		}
		want = append(want, "1 observe", "0 apply --wait 1m0s", "0 observe")
	}
	if diff := cmp.Diff(starts, r.starts(t)); diff != "" {
		t.Errorf("started (-before +after):\n%s", diff)
	}
	r.matches(t, last)
	if diff := cmp.Diff(want, r.asked(t)); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if n := r.line.Stats().Connections; n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// sshCuts is how often an upload is cut.
const sshCuts = 5

// interruptedUploads cuts the upload of a newer kubelet, after the beginning of its content and before the end.
func interruptedUploads(t *testing.T, r *reached, n bundletest.Node) {
	// Handshakes, an observation and the index have less, the kubelet has more.
	const beginning = 20_000
	random := seed.New(t)
	newer := n.Changed(func(n *bundletest.Node) { n.Programs[pathKubelet] = kubeletAt(t, kubeletOf(r.host), "v2") })
	starts := r.starts(t)
	stored := storedSize(t, newer, pathKubelet)
	for range sshCuts {
		at := beginning + random.Int64N(stored-beginning)
		r.line.CutAfter(at)
		var interrupted *remote.InterruptedError
		if e, err := r.over(t, newer, ignore); !errors.As(err, &interrupted) {
			t.Errorf("cut after %d of %d bytes: %+v, %v", at, stored, e, err)
		}
	}
	r.line.CutAfter(-1)
	if diff := cmp.Diff(starts, r.starts(t)); diff != "" {
		t.Errorf("started before the upload was complete (-before +after):\n%s", diff)
	}
	e, err := r.over(t, newer, ignore)
	if err != nil || e.Result != protocol.ResultApplied || e.Restarted != 1 {
		t.Errorf("%+v, %v", e, err)
	}
	// A truncated archive is bad input. The commands of interrupted uploads end in any order.
	want := slices.Concat([]string{"0 apply --wait 1m0s"}, slices.Repeat([]string{"1 observe"}, sshCuts+1), slices.Repeat([]string{"2 apply --wait 1m0s"}, sshCuts))
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(r.asked(t)))); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	r.matches(t, newer)
}

// storedSize returns the compressed size of a program.
func storedSize(t *testing.T, n bundletest.Node, path string) int64 {
	t.Helper()
	_, source := n.Contents(t)
	for _, c := range source.Contents() {
		if c.Digest == bundle.Of([]byte(n.Programs[path])) {
			return c.Stored
		}
	}
	t.Fatalf("no content for %s", path)
	return 0
}

func otherUserKey(t *testing.T, r *reached, n bundletest.Node) {
	other := *r
	other.dialer.Signers = keys(signer(t, newKey(t)))
	var refused *remote.AuthError
	if e, err := other.over(t, n, ignore); !errors.As(err, &refused) {
		t.Errorf("%+v, %v", e, err)
	}
	if asked := r.asked(t); asked != nil {
		t.Errorf("asked: %q", asked)
	}
}

func otherHostKey(t *testing.T, r *reached, n bundletest.Node) {
	r.WriteFile(t, sshHostKey, inFile(t, newKey(t)))
	var changed *remote.HostKeyError
	if e, err := r.over(t, n, ignore); !errors.As(err, &changed) {
		t.Errorf("%+v, %v", e, err)
	}
	if asked := r.asked(t); asked != nil {
		t.Errorf("asked: %q", asked)
	}
}
