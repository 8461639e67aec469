package sshtest

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"wmco/internal/sshtest/simulated"
)

// KeyType is a type of host key.
type KeyType string

// The types that OpenSSH servers have.
const (
	Ed25519 KeyType = "ed25519"
	ECDSA   KeyType = "ecdsa"
	RSA     KeyType = "rsa"
)

// Options are how a server differs from one that works.
type Options struct {
	simulated.Settings
	// HostKeys are the types of its keys; ed25519 if none are named.
	HostKeys []KeyType
	// Key opens the server; a new one if there is none.
	Key ssh.Signer
	// Unauthorized servers take no key until Authorize.
	Unauthorized bool
	// NoSFTP servers have no SFTP subsystem.
	NoSFTP bool
	// Config are further lines of sshd_config.
	Config []string
}

// Server is an SSH server with a machine behind it.
type Server struct {
	// Address is host:port, User the account that works.
	Address string
	User    string
	// Key opens it.
	Key ssh.Signer
	// Root is the machine's folder: C:\k is C/k in it.
	Root string
	// KeyFile is Key in a file, for other programs; empty where Options gave it.
	KeyFile string

	t        testing.TB
	sshd     string
	simhost  string
	folder   string
	options  Options
	process  *exec.Cmd
	complain *os.File
}

// Start starts a server that ends with the test. The test is skipped where there is no sshd.
func (p Programs) Start(t testing.TB, o Options) *Server {
	t.Helper()
	if p.sshd == "" {
		t.Skip("needs OpenSSH's server: make setup installs openssh-server")
	}
	s := &Server{t: t, sshd: p.sshd, simhost: filepath.Join(p.folder, filepath.Base(simhostPackage)), folder: t.TempDir(), options: o}
	s.Root = filepath.Join(s.folder, "machine")
	must(t, os.MkdirAll(filepath.Join(s.Root, "C"), 0o700))
	s.Address = net.JoinHostPort(loopback(), "0")
	me, err := user.Current()
	must(t, err)
	s.User = me.Username
	if me.Uid == "0" {
		must(t, os.MkdirAll("/run/sshd", 0o755)) // where sshd as root shuts itself in
	}
	if s.Key = o.Key; s.Key == nil {
		s.Key, s.KeyFile = s.newKey("client", Ed25519)
	}
	if !o.Unauthorized {
		s.Authorize()
	}
	s.NewHostKeys(o.HostKeys...)
	s.Settings(o.Settings)
	s.listen()
	t.Cleanup(s.Stop)
	return s
}

// loopback is an address that no other server of this process has.
func loopback() string {
	n := addresses.Add(1)
	return fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()%200, n/250%250, 1+n%250)
}

//nolint:gochecknoglobals // a counter over all tests of the process
var addresses atomic.Uint32

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newKey makes a key pair and files of it.
func (s *Server) newKey(name string, kind KeyType) (ssh.Signer, string) {
	s.t.Helper()
	private, err := generate(kind)
	must(s.t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	must(s.t, err)
	path := filepath.Join(s.folder, name)
	must(s.t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	signer, err := ssh.NewSignerFromKey(private)
	must(s.t, err)
	must(s.t, os.WriteFile(path+".pub", ssh.MarshalAuthorizedKey(signer.PublicKey()), 0o600))
	return signer, path
}

func generate(kind KeyType) (any, error) {
	switch kind {
	case Ed25519:
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	case ECDSA:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case RSA:
		return rsa.GenerateKey(rand.Reader, 2048)
	}
	return nil, fmt.Errorf("no such type of key: %q", kind)
}

// NewKey returns a key that the server does not know.
func (s *Server) NewKey() ssh.Signer {
	signer, _ := s.newKey("stranger", Ed25519)
	return signer
}

// Authorize lets Key in from now on.
func (s *Server) Authorize() {
	s.t.Helper()
	must(s.t, os.WriteFile(filepath.Join(s.folder, "authorized_keys"), ssh.MarshalAuthorizedKey(s.Key.PublicKey()), 0o600))
}

// NewHostKeys gives the server other host keys, once it is started anew.
func (s *Server) NewHostKeys(kinds ...KeyType) {
	s.t.Helper()
	if len(kinds) == 0 {
		kinds = []KeyType{Ed25519}
	}
	s.options.HostKeys = kinds
	for _, kind := range kinds {
		s.newKey("host-"+string(kind), kind)
	}
}

// AddHostKey adds one key and leaves the others, once it is started anew.
func (s *Server) AddHostKey(kind KeyType) {
	s.t.Helper()
	s.newKey("host-"+string(kind), kind)
	// The one that was added last is what the server prefers.
	s.options.HostKeys = append([]KeyType{kind}, s.options.HostKeys...)
}

// Settings changes how the machine behaves from now on.
func (s *Server) Settings(settings simulated.Settings) {
	s.t.Helper()
	if settings.Shell == "" {
		settings.Shell = simulated.ShellCmd
	}
	data, err := json.Marshal(settings)
	must(s.t, err)
	must(s.t, os.WriteFile(filepath.Join(s.Root, simulated.SettingsFile), data, 0o600))
}

// listen starts sshd, on the port of before if there was one.
func (s *Server) listen() {
	s.t.Helper()
	s.Address = freeAddress(s.t, s.Address)
	config := filepath.Join(s.folder, "sshd_config")
	must(s.t, os.WriteFile(config, []byte(s.config()), 0o600))
	log, err := os.OpenFile(filepath.Join(s.folder, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(s.t, err)
	s.complain = log
	s.process = exec.Command(s.sshd, "-D", "-e", "-f", config) //nolint:noctx // Stop ends it
	s.process.Stdout, s.process.Stderr = log, log
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	must(s.t, s.process.Start())
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", s.Address) //nolint:noctx // on this machine
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("sshd does not listen: %v\n%s", err, s.Log())
		}
	}
}

func freeAddress(t testing.TB, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", address) //nolint:noctx // on this machine
	must(t, err)
	defer l.Close() //nolint:errcheck // nothing was accepted
	return l.Addr().String()
}

func (s *Server) config() string {
	host, port, _ := net.SplitHostPort(s.Address)
	lines := []string{
		"ListenAddress " + host, "Port " + port, "PidFile none", "UsePAM no", "StrictModes no",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no", "PermitRootLogin prohibit-password",
		"AuthorizedKeysFile " + filepath.Join(s.folder, "authorized_keys"), "PermitUserRC no", "PrintLastLog no",
	}
	// A home of its own: the account's shell reads no start-up files of the person who runs the test.
	lines = append(lines, "SetEnv HOME="+s.folder)
	lines = append(lines, s.options.Config...)
	if !strings.Contains(strings.Join(lines, "\n"), "MaxStartups") {
		lines = append(lines, "MaxStartups 500")
	}
	for _, kind := range s.options.HostKeys {
		lines = append(lines, "HostKey "+filepath.Join(s.folder, "host-"+string(kind)))
	}
	if !s.options.NoSFTP {
		lines = append(lines, "Subsystem sftp "+simulated.SFTP)
	}
	return strings.Join(append(lines, "ForceCommand "+s.simhost+" "+s.Root), "\n") + "\n"
}

// Restart ends the server and its connections, and starts it anew with its present keys.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.listen()
}

// Stop ends the server and its connections.
func (s *Server) Stop() {
	if s.process == nil {
		return
	}
	_ = syscall.Kill(-s.process.Process.Pid, syscall.SIGKILL) // it may have ended
	for _, pid := range sessions(s.process.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
	_ = s.process.Wait()
	_ = s.complain.Close()
	s.process = nil
}

// Log is what sshd wrote.
func (s *Server) Log() string {
	data, err := os.ReadFile(filepath.Join(s.folder, "log"))
	must(s.t, err)
	return string(data)
}

// Starts are the commands that were started on the machine, in their order.
func (s *Server) Starts() []string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.Root, simulated.StartsFile))
	if os.IsNotExist(err) {
		return nil
	}
	must(s.t, err)
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// Path is where a Windows path of the machine lies.
func (s *Server) Path(windows string) string {
	s.t.Helper()
	path, err := simulated.Machine{Folder: s.Root}.Local(windows)
	must(s.t, err)
	return path
}
