package jointest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"wmco/applier/remote"
	"wmco/internal/test/simnode"
	"wmco/internal/test/simnode/memoryssh"
	"wmco/internal/test/sshtest/sshd"
	"wmco/internal/test/testenv/manifests"
	"wmco/internal/test/world/api"
	"wmco/internal/test/world/manager"
)

// memory is the cluster of one story that is played in memory and in virtual time: an API server, what a cluster has around kubelets, and the SSH
// servers of machines by their names. A machine takes as long for everything as a real one.
type memory struct {
	server  *api.Server
	admin   *rest.Config
	ca      []byte
	program remote.Program

	mu   sync.Mutex
	sshd map[string]*memoryssh.Server
}

// memories are those of stories that are being played in memory, by their tests.
var memories sync.Map

// memoryOf returns the cluster in memory of a story; nil is the real one.
func memoryOf(t testing.TB) *memory {
	m, _ := memories.Load(t)
	found, _ := m.(*memory)
	return found
}

// playInMemory plays a story in memory.
func playInMemory(t *testing.T, story func(*testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		m := newMemory(ctx, t)
		t.Cleanup(func() { // after all that the story has begun
			cancel()
			time.Sleep(certificateLifetime) // client-go ends what renews a certificate when that is due
			synctest.Wait()
			must(t, m.server.Etcd.Close())
			memories.Delete(t)
		})
		memories.Store(t, m)
		story(t)
	})
}

const certificateLifetime = 24 * time.Hour

const memoryURL = "https://api-int.example.com:6443"

// newMemory makes the objects of the example cluster, and runs what a cluster has around kubelets until the context ends.
func newMemory(ctx context.Context, t *testing.T) *memory {
	t.Helper()
	root := filepath.Join("..", "..", "..")
	definitions, err := manifests.Read(filepath.Join(root, "deploy", "crd"))
	must(t, err)
	kinds, err := api.WithDefinition(api.Kinds(), definitions[0].Unstructured)
	must(t, err)
	server, err := api.New(ctx, kinds)
	must(t, err)
	m := &memory{server: server, program: memoryssh.NewProgram([]byte("wmco-node")), sshd: map[string]*memoryssh.Server{}}
	m.admin = server.Config(&user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}})
	c, err := manifests.NewClient(m.admin)
	must(t, err)
	var paths []string
	for _, name := range []string{
		"golden/clusters/common", "golden/clusters/none/infrastructure.yaml", "golden/clusters/none/controllerconfig.yaml",
		"golden/clusters/none/machineconfigs.yaml", "deploy/rbac", "deploy/admission",
	} {
		paths = append(paths, filepath.Join(root, filepath.FromSlash(name)))
	}
	list, err := manifests.Read(paths...)
	must(t, err)
	namespaces, others := manifests.Namespaces(list)
	for _, o := range append(namespaces, others...) {
		must(t, o.Create(ctx, c))
	}
	ca, err := manager.Start(ctx, server, m.admin, manager.Options{
		URL: memoryURL, Certificates: certificateLifetime, Nodes: manager.Lifecycle{Every: 5 * time.Second, Grace: 40 * time.Second}, Report: func(err error) { t.Error(err) },
		Run: []func(context.Context) error{func(ctx context.Context) error {
			return manager.Workloads{Every: time.Second, Log: slog.New(slog.DiscardHandler)}.Run(ctx, m.admin)
		}},
	})
	must(t, err)
	m.ca = ca.PEM
	return m
}

// configOf is that of a client of the API server.
func (m *memory) configOf(who rest.ImpersonationConfig) *rest.Config {
	return m.server.Config(&user.DefaultInfo{Name: who.UserName, Groups: append(who.Groups, user.AllAuthenticated)})
}

// anonymous is the configuration of a client without credentials, before Wrap.
func (m *memory) anonymous() *rest.Config {
	return &rest.Config{Host: memoryURL, TLSClientConfig: rest.TLSClientConfig{CAData: m.ca}, QPS: -1}
}

// dial reaches the SSH server of a machine by its name.
func (m *memory) dial(ctx context.Context, name string) (net.Conn, error) {
	m.mu.Lock()
	s := m.sshd[name]
	m.mu.Unlock()
	if s == nil {
		return nil, errors.New("connect: connection refused")
	}
	return s.Dial(ctx)
}

// start starts a machine in memory with its SSH server.
func (m *memory) start(t *testing.T, name string, o sshd.Options, options simnode.Options) (*simnode.Machine, hostServer) {
	t.Helper()
	if o.Shell != "" || o.Silent != "" || len(o.Config) > 0 || o.NoSFTP {
		t.Fatal("an SSH server in memory has no faults of its own")
	}
	options.Times = simnode.Times{}
	options.Wrap, options.Program = m.server.Wrap, "test"
	machine, err := simnode.New(options)
	must(t, err)
	hostKey, _ := newKey(t)
	s := &memoryServer{Server: memoryssh.New(machine, hostKey), name: name, key: o.Key, hostKey: hostKey.PublicKey()}
	if !o.Unauthorized {
		must(t, s.authorize(o.Key))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sshd[name] = s.Server
	return machine, s
}

// eventuallyInMemory waits until done returns true, in virtual time: an hour is more than anything takes that a story waits for.
func eventuallyInMemory(ctx context.Context, what string, done func() bool) error {
	for begin := time.Now(); !done(); {
		if time.Since(begin) > time.Hour {
			return fmt.Errorf("waiting for %s: it has not come within an hour", what)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
	return nil
}

// hostServer is the SSH server of a machine.
//
//nolint:interfacebloat // what stories need of the two kinds
type hostServer interface {
	// address is what the address book has for it.
	address() string
	// showKey returns the host key that it shows.
	showKey(t *testing.T) ssh.PublicKey
	// authorize has it accept a key beside those that it accepts; nil is the one that it was made for.
	authorize(key ssh.Signer) error
	// forgetKeys has it accept no key, and end all connections.
	forgetKeys() error
	// acceptOnly has it accept the keys that administrators_authorized_keys of its machine has, of which lines is a copy.
	acceptOnly(lines ...string) error
	// logins returns how many logins there were, log a text with the fingerprints of their keys.
	logins() (int, error)
	log() (string, error)
	dial(ctx context.Context) (net.Conn, error)
	user() string
}

// realServer is OpenSSH.
type realServer struct{ *sshd.Server }

func (s realServer) address() string { return s.Address }

func (s realServer) showKey(t *testing.T) ssh.PublicKey {
	t.Helper()
	var shown ssh.PublicKey
	_, err := ssh.Dial("tcp", s.Address, &ssh.ClientConfig{HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
		shown = key
		return errors.New("that is all")
	}})
	if shown == nil {
		t.Fatal(err)
	}
	return shown
}

func (s realServer) authorize(key ssh.Signer) error {
	if key != nil {
		s.Key = key
	}
	return s.Authorize()
}

func (s realServer) forgetKeys() error { return errors.Join(s.AuthorizeOnly(), s.Restart()) }

func (s realServer) acceptOnly(lines ...string) error { return s.AuthorizeOnly(lines...) }

func (s realServer) logins() (int, error) { return simnode.Logins(s.Server) }

func (s realServer) log() (string, error) { return s.Log() }

func (s realServer) dial(ctx context.Context) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", s.Address)
}

func (s realServer) user() string { return s.User }

// memoryServer is one in memory.
type memoryServer struct {
	*memoryssh.Server
	name    string
	key     ssh.Signer
	hostKey ssh.PublicKey
}

func (s *memoryServer) address() string { return s.name }

func (s *memoryServer) showKey(*testing.T) ssh.PublicKey { return s.hostKey }

func (s *memoryServer) authorize(key ssh.Signer) error {
	if key == nil {
		key = s.key
	}
	s.RefuseKeys(false)
	return s.Authorize(key.PublicKey())
}

func (s *memoryServer) forgetKeys() error {
	s.RefuseKeys(true)
	s.Break()
	return nil
}

func (s *memoryServer) acceptOnly(...string) error { return nil } // it reads the file of its machine

func (s *memoryServer) logins() (int, error) { return s.Logins(), nil }

func (s *memoryServer) log() (string, error) { return strings.Join(s.Used(), "\n"), nil }

func (s *memoryServer) dial(ctx context.Context) (net.Conn, error) { return s.Dial(ctx) }

func (s *memoryServer) user() string { return remote.DefaultUser }
