package selftest

import (
	"time"

	"wmco/applier"
	"wmco/bundle"
)

// Fixture is what the contract is tested on: a Windows, real or simulated. What a clause needs beyond it is one of the
// capabilities below, which a fixture has if it has their methods. A clause for which a fixture lacks one fails unless
// it is skipped by name.
type Fixture interface {
	// Host returns a host of this Windows: another one each time, as another process would have.
	Host(t T) applier.Host
	// Folder is a folder that exists, is empty and may be read by users.
	Folder() string
}

// OtherPrograms does to files what other programs do.
type OtherPrograms interface {
	// MakeReadOnly gives a file the read-only attribute.
	MakeReadOnly(t T, path string)
	// HoldOpen opens a file without sharing it until release.
	HoldOpen(t T, path string) (release func())
	// RunProgram puts a program at path and runs it until end, which returns when the program has ended.
	RunProgram(t T, path string) (end func())
}

// DiskFiller fills the disk.
type DiskFiller interface {
	// FillDisk leaves this much room on drive C: until release, in bytes.
	FillDisk(t T, left int64) (release func())
}

// LinkMaker makes symbolic links or junctions.
type LinkMaker interface {
	// MakeLink makes a link at path to a folder.
	MakeLink(t T, path, folder string)
}

// AccessReader knows who may read a file.
type AccessReader interface {
	// UsersRead reports whether users who are no administrators may read the file or folder.
	UsersRead(t T, path string) bool
}

// ServiceInstaller installs programs for services.
type ServiceInstaller interface {
	// InstallProgram puts at path an .exe that behaves as program, whatever its arguments.
	InstallProgram(t T, path string, program Program)
	// Seen returns the arguments and the environment with which the running service of that name was started.
	Seen(t T, service string) Seen
}

// Program is how a program behaves as a service.
type Program string

const (
	// ProgramGood starts, and stops when asked to.
	ProgramGood Program = "good"
	// ProgramExits ends before it reports that it runs.
	ProgramExits Program = "exits"
	// ProgramHangsStarting never reports that it runs.
	ProgramHangsStarting Program = "hangs starting"
	// ProgramHangsStopping starts and does not stop when asked to.
	ProgramHangsStopping Program = "hangs stopping"
	// ProgramWrapped starts itself as a child process, which is the service, as kube-log-runner does with the kubelet.
	ProgramWrapped Program = "wrapped"
	// ProgramParent starts and runs itself a second time, as a process that does not end with its parent.
	ProgramParent Program = "parent"
)

// Seen is what the program of a service was started with.
type Seen struct {
	// Argv is its arguments, the program first.
	Argv []string
	// Environment is NAME=value, including the system's variables.
	Environment []string
	// Account is what it runs as, such as AccountSystem.
	Account string
}

// ServiceCrasher ends programs without warning.
type ServiceCrasher interface {
	// CrashService ends the process of a running service, as a crash does. Restart lets the time pass that its recovery
	// waits, where that does not pass alone.
	CrashService(t T, name string) (restart func())
}

// ControlSender sends services controls of their own.
type ControlSender interface {
	// SendControl sends a control from 128 to 255 to a service of ProgramWrapped, and returns what has received it.
	SendControl(t T, service string, control uint8) Receiver
}

// Receiver is the process that receives what the service control manager sends to a service of ProgramWrapped.
type Receiver string

const (
	// ReceiverNone is no process.
	ReceiverNone Receiver = "none"
	// ReceiverChild is the child process of the wrapper.
	ReceiverChild Receiver = "child"
)

// PreshutdownKeeper knows what the service control manager keeps about a service for the time before Windows shuts
// down.
type PreshutdownKeeper interface {
	// AcceptsPreshutdown reports whether a running service accepts SERVICE_CONTROL_PRESHUTDOWN.
	AcceptsPreshutdown(t T, service string) bool
	// PreshutdownTimeout is how long Windows waits for the service after that control.
	PreshutdownTimeout(t T, service string) time.Duration
	// SetPreshutdownTimeout sets it, as a kubelet does.
	SetPreshutdownTimeout(t T, service string, timeout time.Duration)
	// PreshutdownOrder has the services that get that control before the others, in their order.
	PreshutdownOrder(t T) []string
	// AddToPreshutdownOrder adds services at the end, as a kubelet does.
	AddToPreshutdownOrder(t T, services ...string)
}

// FileMaker is a program of an administrator that knows nothing of access.
type FileMaker interface {
	// MakeFile makes a file at path with the system's own access.
	MakeFile(t T, path string)
}

// ServiceHolder keeps handles to services, as a window that shows them does.
type ServiceHolder interface {
	// HoldService keeps a handle until release.
	HoldService(t T, name string) (release func())
}

// Booter restarts Windows.
type Booter interface {
	// Boot restarts Windows and returns when its hosts work again.
	Boot(t T)
}

// LockAbandoner ends a process that has the lock.
type LockAbandoner interface {
	// AbandonLock makes another process take the lock as owner and end without a release.
	AbandonLock(t T, owner string)
}

// CertificateKeeper adds certificates that no bundle has.
type CertificateKeeper interface {
	// AddCertificate adds one to LocalMachine\Root.
	AddCertificate(t T, der []byte)
	// HasCertificate reports whether one is in LocalMachine\Root.
	HasCertificate(t T, der []byte) bool
}

// NetworkMaker makes HNS networks.
type NetworkMaker interface {
	// MakeNetwork makes one and returns its name.
	MakeNetwork(t T) string
}

// Answerer answers probes.
type Answerer interface {
	// Answer makes something answer until stop, and returns the probe that succeeds until then.
	Answer(t T, kind bundle.ProbeKind) (probe bundle.Probe, stop func())
}

// Planter makes folders as a user who is no administrator.
type Planter interface {
	// PlantFolder makes a folder that such a user owns.
	PlantFolder(t T, path string)
}

// AccessOpener gives files an access that no bundle asks for.
type AccessOpener interface {
	// OpenToAll makes a file at path that everybody may write to.
	OpenToAll(t T, path string)
}
