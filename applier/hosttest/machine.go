package hosttest

import (
	"testing"

	"wmco/applier"
	"wmco/bundle"
)

// Maker makes a machine for one clause of the contract: fresh, or with nothing left in Folder and of services and settings
// that earlier clauses made. What the machine needs to end is left to t.Cleanup.
type Maker func(t *testing.T) Machine

// Machine is what the contract is tried on. What a clause needs beyond it is one of the capabilities below, which a
// machine has if it has their methods; a clause for which a machine lacks one fails unless it is skipped by name.
type Machine interface {
	// Host returns a host of this machine: another one each time, as another process would have.
	Host(t testing.TB) applier.Host
	// Folder is a folder that is there, empty and readable by users.
	Folder() string
}

// OtherPrograms does to files what other programs do.
type OtherPrograms interface {
	// MakeReadOnly gives a file the read-only attribute.
	MakeReadOnly(t testing.TB, path string)
	// HoldOpen opens a file and shares it with nobody until release.
	HoldOpen(t testing.TB, path string) (release func())
	// RunProgram puts a program at path and runs it until end, which returns when the program is gone.
	RunProgram(t testing.TB, path string) (end func())
}

// LinkMaker makes symbolic links or junctions.
type LinkMaker interface {
	// MakeLink makes a link at path to a folder.
	MakeLink(t testing.TB, path, folder string)
}

// AccessReader sees who may read.
type AccessReader interface {
	// UsersRead tells whether users who are no administrators may read the file or folder.
	UsersRead(t testing.TB, path string) bool
}

// ServiceInstaller puts programs in place that services can be made of.
type ServiceInstaller interface {
	// InstallProgram puts at path an .exe for services that does as program says, whatever its arguments.
	InstallProgram(t testing.TB, path string, program Program)
	// Seen tells with what arguments and environment the running service of that name was started.
	Seen(t testing.TB, service string) Seen
}

// Program is how a program behaves as a service.
type Program string

const (
	// ProgramGood comes up, and stops when asked to.
	ProgramGood Program = "good"
	// ProgramExits ends before it says that it runs.
	ProgramExits Program = "exits"
	// ProgramHangsStarting never says that it runs.
	ProgramHangsStarting Program = "hangs starting"
	// ProgramHangsStopping comes up and does not stop when asked to.
	ProgramHangsStopping Program = "hangs stopping"
	// ProgramParent comes up and runs itself a second time, as a process that does not end with its parent.
	ProgramParent Program = "parent"
)

// Seen is what the program of a service was given.
type Seen struct {
	// Argv is its arguments, the program first.
	Argv []string
	// Environment is NAME=value, with that of the machine.
	Environment []string
}

// ServiceHolder keeps handles to services, as a window that shows them does.
type ServiceHolder interface {
	// HoldService keeps a handle until release.
	HoldService(t testing.TB, name string) (release func())
}

// Booter boots the machine.
type Booter interface {
	// Boot restarts the machine and returns when its hosts work again.
	Boot(t testing.TB)
}

// LockAbandoner takes the lock and dies.
type LockAbandoner interface {
	// AbandonLock lets another process take the lock of the machine under that name and end without a release.
	AbandonLock(t testing.TB, owner string)
}

// CertificateKeeper has certificates of its own on the machine.
type CertificateKeeper interface {
	// AddCertificate adds one to LocalMachine\Root.
	AddCertificate(t testing.TB, der []byte)
	// HasCertificate tells whether one is there.
	HasCertificate(t testing.TB, der []byte) bool
}

// NetworkMaker makes HNS networks.
type NetworkMaker interface {
	// MakeNetwork makes one and returns its name.
	MakeNetwork(t testing.TB) string
}

// Answerer answers probes.
type Answerer interface {
	// Answer lets something answer on the machine until stop, and returns the probe that holds meanwhile.
	Answer(t testing.TB, kind bundle.ProbeKind) (probe bundle.Probe, stop func())
}

// AccessOpener gives files an access that no bundle asks for.
type AccessOpener interface {
	// OpenToAll makes a file at path that everybody may write to.
	OpenToAll(t testing.TB, path string)
}
