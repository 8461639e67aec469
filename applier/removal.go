package applier

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
)

// A node agent that ends its own node removes itself with everything else. So a copy of its program does that, as
// another service, which a boot starts again:
//
//	agent:   copy of the program --> kubeconfig of its own, record --> service starts
//	service: stops the agent and all others, removes everything --> reports --> removes kubeconfig and record --> retires
//
// A copy and not a second name of the same file: Windows removes no name of a program that runs, so the agent's own
// would stay. It is outside of our folders, which are removed before it ends, and where only administrators write:
// Windows looks for libraries in the folder of a program first
// (learn.microsoft.com/windows/win32/dlls/dynamic-link-library-search-order).
//
// Whoever brings a bundle to the host, or cleans it up over SSH, ends a removal that is under way.

// RemovalAccess is the path of the kubeconfig with which a removal reports.
const RemovalAccess = records.FileRemovalAccess

// removalProgram returns the path of the copy. It differs from Node to Node: a file that Windows is to remove with the
// next boot is no program of a later removal.
func removalProgram(node string) string {
	return bundle.RemovalProgram + bundle.Of([]byte(node)).Short() + ".exe"
}

// Removal is what a removal begins with.
type Removal struct {
	// Node is the UID of the Node that ends.
	Node string
	// Access is a kubeconfig with which the node reports, without paths. It holds a private key. None keeps that of a
	// removal which has begun.
	Access []byte
	// LogDir is the folder for logs; empty is none.
	LogDir string
}

// ErrNotService means that a program which does not run as the service of the node agent cannot begin a removal.
var ErrNotService = errors.New("the node agent does not run as a service")

// BeginRemoval starts the removal of everything from this host in another service. A removal that has begun is
// continued. From then on, the caller changes nothing on the host.
func (e *Engine) BeginRemoval(ctx context.Context, r Removal, wait time.Duration) error {
	return newRun(e, Options{LockWait: wait}).whileLocked(ctx, func() error { return e.beginRemoval(ctx, r) })
}

func (e *Engine) beginRemoval(ctx context.Context, r Removal) error {
	states, err := e.Host.Services(ctx, []string{e.Self, bundle.RemovalService})
	switch {
	case err != nil:
		return err
	case e.Self == "":
		return ErrNotService
	case states[1].Status != plan.ServiceAbsent && states[1].Status != plan.ServiceStopped:
		return nil
	}
	program := removalProgram(r.Node)
	if err := e.copyFile(ctx, bundle.Program(states[0].CommandLine), program); err != nil {
		return err
	}
	if err := e.recordRemoval(ctx, r); err != nil {
		return err
	}
	command := []string{program, "cleanup", "--service"}
	if r.LogDir != "" {
		command = append(command, "--log-dir", r.LogDir)
	}
	service := plan.ServiceConfig{
		Name: bundle.RemovalService, Description: "OpenShift managed " + bundle.RemovalService, Start: bundle.StartAuto,
		CommandLine: bundle.CommandLine(command), Recovery: bundle.Recovery{RestartAfterSeconds: []int{10}, ResetSeconds: 300},
	}
	if err := e.Host.PutService(ctx, service); err != nil {
		return err
	}
	return e.Host.StartService(ctx, service.Name)
}

// copyFile copies a file, for administrators only.
func (e *Engine) copyFile(ctx context.Context, path, to string) error {
	f, err := e.Host.Open(ctx, path)
	if err != nil {
		return fmt.Errorf("copying %s: %w", path, err)
	}
	return errors.Join(e.Host.Write(ctx, to, bundle.AccessAdmins, f), f.Close())
}

// recordRemoval writes the record, unless there is one.
func (e *Engine) recordRemoval(ctx context.Context, r Removal) error {
	if err := e.prepareFolders(ctx); err != nil {
		return err
	}
	before, err := records.ReadRemoval(ctx, e.Host)
	switch {
	case err != nil || before.Node == r.Node:
		return err
	case len(r.Access) == 0:
		return ErrNoRemoval
	}
	return records.WriteRemoval(ctx, e.Host,
		records.Removal{Program: e.Program, Time: e.Clock.Now(), Node: r.Node}, r.Access)
}

// PendingRemoval returns the UID of the Node whose removal has begun on this host, empty if none has.
func (e *Engine) PendingRemoval(ctx context.Context) (node string, err error) {
	r, err := records.ReadRemoval(ctx, e.Host)
	return r.Node, err
}

// ReadRemovalAccess returns the kubeconfig with which the removal reports.
func (e *Engine) ReadRemovalAccess(ctx context.Context) ([]byte, error) {
	return records.ReadAll(ctx, e.Host, RemovalAccess)
}

// ErrNoRemoval means that no removal is under way any longer: another run has ended it.
var ErrNoRemoval = errors.New("no removal is under way on this host")

// ContinueRemoval is Cleanup for bundle.RemovalService. What it needs itself stays, until FinishRemoval.
func (e *Engine) ContinueRemoval(ctx context.Context, wait time.Duration) (Outcome, error) {
	r := newRun(e, Options{LockWait: wait})
	return r.endRun("", r.whileLocked(ctx, func() error {
		if err := r.openRecords(ctx); err != nil {
			return err
		}
		if r.records.Removal.Node == "" {
			return ErrNoRemoval
		}
		return r.cleanupHost(ctx, removesAgents)
	}))
}

// removeAgents removes the node agents that were uploaded over SSH. One that runs keeps its folder: the next cleanup
// over SSH, which is what runs, comes from there.
func removeAgents(ctx context.Context, host Host) error {
	_ = removeTree(ctx, host, bundle.UploadFolder)
	return ctx.Err()
}

// FinishRemoval removes what ContinueRemoval has left, but for the service: RetireRemoval does.
func (e *Engine) FinishRemoval(ctx context.Context, wait time.Duration) error {
	return newRun(e, Options{LockWait: wait}).whileLocked(ctx, func() error { return records.ForgetRemoval(ctx, e.Host) })
}

// RetireRemoval removes the service that the caller runs as, bundle.RemovalService. It is the last act on the host.
func (e *Engine) RetireRemoval(ctx context.Context) error {
	return e.Host.RetireService(ctx, bundle.RemovalService)
}

// endRemoval ends a removal by another process, if there is one: its service, then its record.
func endRemoval(ctx context.Context, host Host, r records.Removal) error {
	states, err := host.Services(ctx, []string{bundle.RemovalService})
	if err != nil || states[0].Status == plan.ServiceAbsent && r.Node == "" {
		return err
	}
	if err := host.StopService(ctx, bundle.RemovalService); err != nil {
		return err
	}
	if err := host.DeleteService(ctx, bundle.RemovalService); err != nil {
		return err
	}
	for _, program := range []string{bundle.Program(states[0].CommandLine), removalProgram(r.Node)} {
		if !strings.HasPrefix(bundle.FoldPath(program), bundle.FoldPath(bundle.RemovalProgram)) {
			continue // not one of ours
		}
		if err := host.Remove(ctx, program); err != nil {
			return fmt.Errorf("removing %s: %w", program, err)
		}
	}
	return records.ForgetRemoval(ctx, host)
}
