package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode/record"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/folderhost"
	"wmco/internal/test/sshtest/simulated"
	"wmco/internal/test/sshtest/sshd"
	"wmco/layout"
	"wmco/render"
)

// Some nodes are instances of windows-instances. One that is removed gets an SSH server in front of a host in a folder, which has what its host in memory
// has: the operator logs in and cleans it up with the real node agent.
//
//	light node --its agent ends--> host in a folder, with its bundle --its entry is removed--> cordon, drain, cleanup over SSH, end of the Node
//	                               |
//	                               no answer for a while, sometimes

// instancesEach is of how many new nodes one is an instance, and instancesKept how many entries are left: without one, nothing would be removed.
const instancesEach, instancesKept = 3, 1

// programs are built for the first removal.
var programs struct {
	sshd.Programs
	once sync.Once
	node string
	err  error
}

// buildPrograms builds the SSH servers' program and the node agent. The test is skipped where there is no sshd.
func buildPrograms(t testing.TB) {
	t.Helper()
	programs.once.Do(func() {
		ctx := context.Background()
		if programs.Programs, programs.err = sshd.Build(ctx); programs.err == nil {
			programs.node, programs.err = programs.Go(ctx, "wmco/cmd/wmco-node")
		}
	})
	must(t, programs.err)
	if err := programs.CheckServer(); err != nil {
		t.Skip(err)
	}
}

// addresses is a file that says where the SSH servers are, by the addresses of their hosts. The operator reads it with each connection.
type addresses string

func (a addresses) read() (map[string]string, error) {
	all := map[string]string{}
	text, err := os.ReadFile(string(a))
	if err != nil {
		return all, err
	}
	return all, json.Unmarshal(text, &all)
}

// add notes the server of one more address.
func (a addresses) add(host, server string) error {
	all, err := a.read()
	if err != nil {
		return err
	}
	all = maps.Clone(all)
	all[host] = server
	return a.write(all)
}

func (a addresses) write(all map[string]string) error {
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.WriteFile(string(a)+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(string(a)+".new", string(a))
}

var errNoServer = errors.New("no SSH server is at this address")

// dial reaches a server, which is on a loopback address.
func (a addresses) dial(ctx context.Context, network, address string) (net.Conn, error) {
	all, err := a.read()
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if all[host] == "" {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errNoServer}
	}
	return (&net.Dialer{}).DialContext(ctx, network, all[host])
}

// writeKey makes the Secret with which the operator logs in.
func (s *soak) writeKey(t testing.TB) {
	t.Helper()
	key := s.newLoginKey(t)
	s.try(t, "the private key", func() error {
		if err := client.IgnoreNotFound(s.Delete(s.ctx, loginSecret(""))); err != nil {
			return err
		}
		return s.Create(s.ctx, loginSecret(key))
	})
}

// reached is a host in a folder, and the SSH server in front of it.
type reached struct {
	host   *folderhost.Host
	server *sshd.Server
	keys   acceptedKeys
}

// leaving is an instance that is removed.
type leaving struct {
	*reached
	name, address string
	// stays are the paths and settings of the existing operator, which stay on the host.
	stays map[string]bool
}

func isInstance(m *machine) bool { return m.entry != "" }

// writeInstances writes the entries of all instances that are nodes and stay.
func (s *soak) writeInstances(t testing.TB) {
	t.Helper()
	data := map[string]string{}
	for _, m := range s.named(isInstance) {
		data[m.entry] = "username=" + remote.DefaultUser
	}
	for _, a := range s.adopting {
		data[a.entry] = "username=" + remote.DefaultUser
	}
	text, err := json.Marshal(data)
	must(t, err)
	s.put(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: %s}, data: %s}", gather.OperatorNamespace, render.InstancesConfigMap, text))
}

// pin writes a host key into the record of an instance, nil for none: the removal of one waits until the hosts of all others were reached once.
func (s *soak) pin(t testing.TB, entry string, key ssh.PublicKey) {
	t.Helper()
	text := ""
	if key != nil {
		text = hosts.EncodeKey(key)
	}
	records := &hosts.Records{Live: s, Client: s, Namespace: gather.OperatorNamespace}
	s.try(t, "the host key of an instance", func() error {
		return records.UpdateRecord(s.ctx, record.OfEntry(entry), func(r record.Record) (record.Record, error) {
			r.HostKey = text
			return r, nil
		})
	})
}

// removeInstance removes the entry of an instance. It reports whether there was one.
func (s *soak) removeInstance(t *testing.T) bool {
	if len(s.named(isInstance)) <= instancesKept {
		return false
	}
	removed := false
	for _, m := range s.choose(1, func(m *machine) bool { return isInstance(m) && s.isOrdinary(m) && s.isReachable(m) }) {
		l := &leaving{reached: m.reached, name: m.name, address: m.entry, stays: existingLeaves()}
		if m.reached == nil {
			rendered, err := s.render(s.ctx)
			if err != nil || rendered[m.name].Node.Name == "" {
				return false // the API server is not well, or inputs are refused: another time
			}
			request, err := rendered[m.name].ArchiveRequest(executables.contents)
			must(t, err)
			l.reached, l.stays = s.serve(t, m.facts), nil
			must(t, l.apply(s.ctx, hostsim.NewClock(time.Now()), request))
			must(t, s.addresses.add(m.entry, l.server.Address))
			s.pin(t, m.entry, nil)
		}
		removed = true
		m.stop()
		delete(s.machines, m.name)
		s.leaving[m.name] = l
		s.writeInstances(t)
		if hangs := s.options.hangs; hangs > 0 && s.random.IntN(2) == 0 {
			must(t, l.server.MuteFrom(simulated.SilentAlways))
			pause(s.ctx, hangs)
			must(t, errors.Join(l.server.MuteFrom(""), l.server.Restart()))
		}
	}
	return removed
}

// serve makes a host with the executables in a folder, and starts an SSH server in front of it.
func (s *soak) serve(t testing.TB, facts bundle.Facts) *reached {
	t.Helper()
	l := &reached{}
	var err error
	l.server, err = programs.Start(t.TempDir(), sshd.Options{Key: s.signer})
	must(t, err)
	s.served = append(s.served, l)
	l.host, err = folderhost.Create(l.server.Root, folderhost.Options{Facts: facts})
	must(t, err)
	must(t, executables.put(s.ctx, l.host))
	must(t, l.followKeys(s.loginLine(), s.observer))
	return l
}

// end ends the SSH server, and removes the folder.
func (l *reached) end() error {
	if l.keys.end != nil {
		l.keys.end()
	}
	l.server.Stop()
	if l.host == nil {
		return nil
	}
	return errors.Join(l.host.Close(), os.RemoveAll(l.server.Root))
}

// apply brings the host to a bundle, as `wmco apply` does.
func (l *reached) apply(ctx context.Context, clock applier.Clock, request archive.Request) error {
	out, in := io.Pipe()
	go func() { in.CloseWithError(archive.Send(ctx, in, request)) }() // nil is io.EOF
	defer out.Close()                                                 // it ends the sender
	reader, err := archive.NewReader(out)
	if err != nil {
		return err
	}
	engine := &applier.Engine{Host: l.host, Clock: clock, Permits: layout.Check, Program: "soak", Owner: "wmco-node apply of an instance", Settle: 10 * time.Millisecond}
	_, err = engine.Apply(ctx, reader.Manifest, reader, applier.Options{LockWait: time.Minute})
	return err
}

// leavingUnrest returns why removals are not done; empty if they are. Of one that is done, nothing may be left on the host or in the records.
func (s *soak) leavingUnrest() string {
	nodes := s.observer.snapshot()
	for _, name := range slices.Sorted(maps.Keys(s.leaving)) {
		l := s.leaving[name]
		if _, stays := nodes[name]; stays {
			return "the removed instance " + name + " is a Node"
		}
		records := &hosts.Records{Live: s, Client: s, Cache: s, Namespace: gather.OperatorNamespace}
		if _, known, err := records.GetRecord(s.ctx, record.OfEntry(l.address)); err != nil || known {
			return fmt.Sprintf("the removed instance %s is in the records: %t, %v", name, known, err)
		}
		for _, left := range l.left(s.ctx) {
			s.observer.violate(ruleRemoved, "%s has %s", name, left)
		}
		if err := l.end(); err != nil {
			s.observer.violate(ruleRemoved, "the folder of %s: %v", name, err)
		}
		s.served = slices.DeleteFunc(s.served, func(r *reached) bool { return r == l.reached })
		delete(s.leaving, name)
	}
	return ""
}

// left returns what a removal has left on a host. Features of Windows stay, the key with which the operator has logged in, and what the existing operator
// had for itself.
func (l *leaving) left(ctx context.Context) []string {
	after, err := l.host.Snapshot(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	var list []string
	for name := range after.Services {
		list = append(list, "the service "+name)
	}
	for path, file := range after.Files {
		uploaded := strings.HasPrefix(strings.ToLower(path), `c:\windows\wmco\wmco-node-`)
		if file.Kind == plan.FileRegular && !uploaded && !l.stays[bundle.FoldPath(path)] {
			list = append(list, "the file "+path)
		}
	}
	for name := range after.Settings {
		kind, _, _ := strings.Cut(name, " ")
		if kind != string(bundle.KindFeature) && kind != string(bundle.KindAuthorizedKey) && !l.stays[name] {
			list = append(list, "the setting "+name)
		}
	}
	return list
}
