package memoryssh_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	cryptossh "golang.org/x/crypto/ssh"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/applier/remote/ssh"
	"wmco/bundle"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/test/simnode"
	"wmco/internal/test/simnode/memoryssh"
	"wmco/internal/test/sshtest"
	"wmco/internal/test/sshtest/sshd"
)

var programs sshtest.Shared

func TestMain(m *testing.M) {
	status := m.Run()
	programs.Remove()
	os.Exit(status)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newKey(t testing.TB) cryptossh.Signer {
	t.Helper()
	key, _, err := memoryssh.NewKey()
	must(t, err)
	return key
}

// contractHost is a host that both kinds of servers can stand in front of.
type contractHost struct {
	dialer  ssh.Dialer
	target  remote.Target
	program remote.Program
	key     cryptossh.Signer
	machine *simnode.Machine
	// newHostKey gives the server another host key, stop ends it, and breakAll its connections.
	newHostKey, stop, breakAll func()
}

// answers asks one host what the operator asks hosts, well and badly, and returns the answers.
func answers(t *testing.T, h contractHost) (all []string) {
	t.Helper()
	say := func(what string, values ...any) { all = append(all, what+": "+fmt.Sprint(values...)) }
	kind := func(err error) string {
		var status *remote.CommandError
		switch {
		case errors.As(err, &status):
			return fmt.Sprintf("*remote.CommandError %d", status.Status)
		case err != nil:
			return fmt.Sprintf("%T", err)
		}
		return "no error"
	}
	ctx := t.Context()
	with := func(key cryptossh.Signer) *ssh.Transport {
		d := h.dialer
		d.Signers = func(context.Context) ([]cryptossh.Signer, error) { return []cryptossh.Signer{key}, nil }
		transport := ssh.NewTransport(d)
		t.Cleanup(func() { _ = transport.Close() })
		return transport
	}
	say("another key", kind(with(newKey(t)).Connect(ctx, h.target)))
	transport := with(h.key)
	say("the key", kind(transport.Connect(ctx, h.target)))
	say("a program that is not there", kind(transport.Run(ctx, h.target, remote.Command{Line: `C:\\Windows\\none.exe facts`, Name: "none", Stdout: drain})))
	must(t, transport.Transfer(ctx, h.target, func(f remote.Files) error {
		const folder = "/C:/Windows/test"
		entries, err := f.Folder(folder)
		say("a folder that is made", len(entries), err)
		_, err = f.Folder("/C:/Windows/none/below")
		say("a folder below none", err != nil)
		say("a file that is not there", errors.Is(f.Read(folder+"/none", io.Discard, 10), os.ErrNotExist))
		say("writing", kind(f.Write(folder+"/a.new", strings.NewReader("0123456789"), 0, 10)))
		say("writing on", kind(f.Write(folder+"/a.new", strings.NewReader("abc"), 8, 3)))
		say("writing on in none", f.Write(folder+"/none", strings.NewReader("abc"), 8, 3) != nil)
		say("writing b", kind(f.Write(folder+"/b", strings.NewReader("old and longer"), 0, 14)))
		say("replacing", kind(f.Replace(folder+"/a.new", folder+"/b")))
		var text bytes.Buffer
		say("reading", kind(f.Read(folder+"/b", &text, 1000)), text.String())
		entries, err = f.Folder(folder)
		say("the folder", kind(err))
		for _, e := range entries {
			say("has", e.Name(), e.Size(), e.IsDir())
		}
		say("removing", kind(f.Remove(folder+"/b")))
		say("removing again", f.Remove(folder+"/b") != nil)
		return nil
	}))
	client := remote.NewClient(transport, h.program, remote.DefaultLimits())
	agent := client.AgentFor(h.target)
	facts, err := agent.Facts(ctx)
	say("facts", facts.HostName, facts.Addresses, err)
	// Without the kubelet, whose stand-in needs an API server.
	n := bundletest.New().Changed(func(n *bundletest.Node) { n.Services = n.Services[:1] })
	manifest, source := n.Contents(t)
	request := remote.Request{Manifest: manifest, Source: source}
	seen, err := agent.Observe(ctx, request)
	say("observed", seen.InSync, len(seen.Missing), len(seen.Actions), kind(err))
	for range 2 {
		var events []protocol.EventKind
		result, err := agent.Apply(ctx, request, remote.ApplyOptions{}, func(e protocol.Event) {
			if e.Event != protocol.EventReceived {
				events = append(events, e.Event)
			}
		})
		say("applied", result.Result, result.Written, result.Restarted, events, kind(err))
	}
	data, err := h.machine.ReadFile(h.program.Path)
	if err != nil {
		return append(all, err.Error())
	}
	must(t, h.machine.WriteFile(ctx, h.program.Path, bundle.AccessAdmins, append([]byte{data[0] + 1}, data[1:]...)))
	_, err = agent.Facts(ctx)
	again, _ := h.machine.ReadFile(h.program.Path)
	say("facts after damage", kind(err), bytes.Equal(again, data))
	changed, source := n.Changed(func(n *bundletest.Node) { n.Files[`C:\k\cni.conf`] += " " }).Contents(t)
	request = remote.Request{Manifest: changed, Source: source}
	h.newHostKey() // new connections get it
	_, err = agent.Apply(ctx, request, remote.ApplyOptions{ConfirmWithin: time.Hour}, func(e protocol.Event) {
		if e.Event == protocol.EventConfirm {
			h.breakAll()
		}
	})
	say("a connection that breaks", kind(err))
	say("another host key", kind(with(h.key).Connect(ctx, h.target)))
	h.stop()
	err = with(h.key).Connect(ctx, h.target)
	var away *remote.UnreachableError
	say("off", errors.As(err, &away) && away.Phase == remote.PhaseDial)
	return all
}

func drain(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

func facts(address string) bundle.Facts {
	return bundle.Facts{
		Schema: bundle.FactsSchema, HostName: "win", Addresses: []string{address}, OSBuild: "10.0.20348",
		DefaultRoute: bundle.DefaultRoute{Address: address, Gateway: "10.0.0.1"},
	}
}

func dialer(t *testing.T) ssh.Dialer {
	return ssh.Dialer{Limits: ssh.DefaultLimits(), Pins: ssh.NewKnownHosts(filepath.Join(t.TempDir(), "known_hosts"))}
}

// TestItAnswersAsOpenSSH: what the operator asks is answered in the same way by OpenSSH's server with the real wmco-node.
func TestItAnswersAsOpenSSH(t *testing.T) {
	programs.Build(t)
	var openSSH, memory []string
	m, s, err := simnode.WithSSH(programs.Programs, t.TempDir(), sshd.Options{}, simnode.Options{Facts: facts("10.0.0.7"), Times: simnode.FastTimes()})
	must(t, err)
	program, err := remote.FileProgram(programs.Node)
	must(t, err)
	target := remote.Target{User: s.User, Address: s.Address}
	openSSH = answers(t, contractHost{
		dialer: dialer(t), target: target, program: program, key: s.Key, machine: m, stop: s.Stop, breakAll: func() { must(t, s.Restart()) },
		newHostKey: func() { must(t, s.NewHostKeys()) },
	})
	must(t, m.Close())
	synctest.Test(t, func(t *testing.T) {
		m, err := simnode.New(simnode.Options{Facts: facts("10.0.0.7"), Times: simnode.FastTimes()})
		must(t, err)
		defer func() { must(t, m.Close()) }()
		key := newKey(t)
		s := memoryssh.New(m, newKey(t))
		must(t, s.Authorize(key.PublicKey()))
		var network memoryssh.Network
		network.Connect("10.0.0.7", s)
		d := dialer(t)
		d.Dial = network.Dial
		memory = answers(t, contractHost{
			dialer: d, target: remote.Target{User: "Administrator", Address: "10.0.0.7:22"}, program: memoryssh.NewProgram(bytes.Repeat([]byte("a program"), 50_000)), key: key, machine: m,
			stop: s.Stop, breakAll: s.Break, newHostKey: func() { s.SetHostKey(newKey(t)) },
		})
	})
	if diff := cmp.Diff(openSSH, memory); diff != "" {
		t.Errorf("OpenSSH (-) and memory (+):\n%s", diff)
	}
	for _, want := range []string{"facts: win[10.0.0.7] <nil>", "facts after damage: no errortrue", "a connection that breaks: *remote.InterruptedError", "off: true"} {
		if !slices.Contains(openSSH, want) {
			t.Errorf("OpenSSH did not answer %q: %q", want, openSSH)
		}
	}
}
