package sshd

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"wmco/internal/test/sshtest/simulated"
)

// Options configure a server, mostly its faults.
type Options struct {
	simulated.Settings
	// Address is host:port; empty for a new loopback address, port 0 for a free one.
	Address string
	// HostKeys are the types of the host keys; ed25519 if empty.
	HostKeys []KeyType
	// Key is the key to log in with; nil for a new one.
	Key ssh.Signer
	// Unauthorized servers accept no key until Authorize.
	Unauthorized bool
	// NoSFTP servers have no SFTP subsystem.
	NoSFTP bool
	// Config are additional lines of sshd_config.
	Config []string
}

// Server is an SSH server in front of a simulated host.
type Server struct {
	// Address is host:port, User the account to log in with.
	Address string
	User    string
	// Key is the key to log in with.
	Key ssh.Signer
	// Root is the host's folder: C:\k is C/k in it.
	Root string
	// KeyFile is Key in a file, for other programs; empty if Options had the key.
	KeyFile string

	sshd     string
	simhost  string
	folder   string
	options  Options
	process  *exec.Cmd
	complain *os.File
}

// ErrNoServer means that OpenSSH's server is not installed.
var ErrNoServer = errors.New("needs OpenSSH's server: make setup installs openssh-server")

// startLimit is for a server that does not begin to listen.
const startLimit = 5 * time.Minute

// CheckServer returns ErrNoServer where there is no sshd.
func (p Programs) CheckServer() error {
	if p.sshd == "" {
		return ErrNoServer
	}
	return nil
}

// Start starts a server that keeps its files in the folder, until Stop. Without sshd it returns ErrNoServer.
func (p Programs) Start(folder string, o Options) (*Server, error) {
	if err := p.CheckServer(); err != nil {
		return nil, err
	}
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	s := &Server{User: me.Username, Address: o.Address, sshd: p.sshd, simhost: p.simhost, folder: folder, options: o}
	if s.Address == "" {
		s.Address = net.JoinHostPort(Loopback(), "0")
	}
	if me.Uid == "0" {
		// The folder that sshd needs as root (privilege separation).
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			return nil, err
		}
	}
	if err := s.prepareFolder(); err != nil {
		return nil, err
	}
	return s, s.startListening()
}

// prepareFolder creates the host and the keys.
func (s *Server) prepareFolder() error {
	s.Root = filepath.Join(s.folder, "machine")
	if err := os.MkdirAll(filepath.Join(s.Root, "C", "Windows"), 0o700); err != nil {
		return err
	}
	var err error
	if s.Key = s.options.Key; s.Key == nil {
		if s.Key, s.KeyFile, err = s.newKey("client", Ed25519); err != nil {
			return err
		}
	}
	if !s.options.Unauthorized {
		err = s.Authorize()
	}
	return errors.Join(err, s.NewHostKeys(s.options.HostKeys...), s.Settings(s.options.Settings))
}

// Settings changes the behaviour of the host.
func (s *Server) Settings(settings simulated.Settings) error {
	if settings.Shell == "" {
		settings.Shell = simulated.ShellCmd
	}
	data, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.Root, simulated.SettingsFile), data, 0o600)
}

// MuteFrom has the host say nothing any more from a point on, or speak again. What hangs already ends with Restart.
func (s *Server) MuteFrom(from simulated.Silent) error {
	settings := s.options.Settings
	settings.Silent = from
	return s.Settings(settings)
}

// startListening starts sshd, after a restart on the same port.
func (s *Server) startListening() error {
	address, err := freeAddress(s.Address)
	if err != nil {
		return err
	}
	s.Address = address
	config := filepath.Join(s.folder, "sshd_config")
	if err := os.WriteFile(config, []byte(s.sshdConfig()), 0o600); err != nil {
		return err
	}
	log, err := os.OpenFile(s.logFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	process := exec.Command(s.sshd, "-D", "-e", "-f", config) //nolint:noctx // Stop ends it
	process.Stdout, process.Stderr = log, log
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := process.Start(); err != nil {
		return errors.Join(err, log.Close())
	}
	s.process, s.complain = process, log
	return s.awaitListening()
}

// awaitListening waits until the server listens.
func (s *Server) awaitListening() error {
	for end := time.Now().Add(startLimit); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", s.Address) //nolint:noctx // loopback only
		if err == nil {
			return c.Close()
		}
		if time.Now().After(end) {
			s.Stop()
			text, _ := s.Log() // it only adds to the error
			return fmt.Errorf("waiting for sshd to listen: %w\n%s", err, text)
		}
	}
}

func (s *Server) sshdConfig() string {
	host, port, _ := net.SplitHostPort(s.Address)
	lines := []string{
		"ListenAddress " + host, "Port " + port, "PidFile none", "UsePAM no", "StrictModes no",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no", "PermitRootLogin prohibit-password",
		"AuthorizedKeysFile " + s.authorizedKeys(), "PermitUserRC no", "PrintLastLog no",
	}
	// An own home: the shell reads no start-up files of the person who runs it.
	lines = append(lines, "SetEnv HOME="+s.folder)
	lines = append(lines, s.options.Config...)
	if !strings.Contains(strings.Join(lines, "\n"), "MaxStartups") {
		lines = append(lines, "MaxStartups 500")
	}
	for _, kind := range s.options.HostKeys {
		lines = append(lines, "HostKey "+filepath.Join(s.folder, hostKey(kind)))
	}
	if !s.options.NoSFTP {
		lines = append(lines, "Subsystem sftp "+simulated.SFTP)
	}
	return strings.Join(append(lines, "ForceCommand "+s.simhost+" "+s.Root), "\n") + "\n"
}

// Restart ends the server and its connections, and starts it again.
func (s *Server) Restart() error {
	s.Stop()
	return s.startListening()
}

// Stop ends the server and its connections.
func (s *Server) Stop() {
	if s.process == nil {
		return
	}
	// It may have ended. Otherwise it accepts no connection from here on, and is the parent of its sessions until they are
	// found.
	_ = syscall.Kill(-s.process.Process.Pid, syscall.SIGSTOP)
	for _, pid := range listDescendants(s.process.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
	_ = syscall.Kill(-s.process.Process.Pid, syscall.SIGKILL)
	_ = s.process.Wait()
	_ = s.complain.Close()
	s.process = nil
}

func (s *Server) logFile() string { return filepath.Join(s.folder, "log") }

// Log returns what sshd logged.
func (s *Server) Log() (string, error) {
	data, err := os.ReadFile(s.logFile())
	return string(data), err
}

// Starts returns the commands that were started on the host, in order.
func (s *Server) Starts() ([]string, error) {
	data, err := os.ReadFile(filepath.Join(s.Root, simulated.StartsFile))
	if os.IsNotExist(err) {
		return nil, nil
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n"), err
}

// Path returns the file of a Windows path of the host.
func (s *Server) Path(windows string) (string, error) {
	return simulated.Machine{Folder: s.Root}.Local(windows)
}
