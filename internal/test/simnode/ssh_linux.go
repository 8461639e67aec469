package simnode

import (
	"strings"

	"wmco/internal/test/sshtest/sshd"
)

// WithSSH returns a machine behind a real SSH server, to which the real node program is uploaded. Folder holds both;
// Options.Folder is set to the part of the machine. The server ends with the machine.
func WithSSH(programs sshd.Programs, folder string, s sshd.Options, o Options) (*Machine, *sshd.Server, error) {
	server, err := programs.Start(folder, s)
	if err != nil {
		return nil, nil, err
	}
	o.Folder = server.Root
	m, err := New(o)
	if err != nil {
		server.Stop()
		return nil, nil, err
	}
	m.ssh = server
	return m, server, nil
}

// Logins returns the number of logins over SSH since the server was first started.
func Logins(s *sshd.Server) (int, error) {
	log, err := s.Log()
	return strings.Count(log, "\nAccepted publickey for "), err
}
