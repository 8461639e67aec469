package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
)

const (
	// sshService is the OpenSSH server of Windows. A host without this service has another one, which is left alone.
	sshService = "sshd"
	// sshFolder holds its configuration and host keys, sshLogs its logs. sshd does not start, and logs nothing, if
	// others than SYSTEM and Administrators may write to them (PowerShell/Win32-OpenSSH#2282, #2287).
	sshFolder = `C:\ProgramData\ssh`
	sshLogs   = sshFolder + `\logs`
	sshConfig = sshFolder + `\sshd_config`
)

const (
	// sshGrace is how long the OpenSSH server may be stopped, such as by a person or after a boot, until it is started.
	sshGrace = 2 * time.Minute
	// sshRetry is the time between two starts.
	sshRetry = 5 * time.Minute
)

// sshServer keeps the OpenSSH server running: the operator joins a host over it and repairs its agent, and nothing else
// would show that it is stopped. One that is disabled is meant to be: a node that has joined needs no login.
type sshServer struct {
	// missing reports whether it did not run at the last look, since when that is so, startAt when it is started next.
	// Both are since the boot.
	missing        bool
	since, startAt time.Duration
	// stopped is why it does not run, empty while it does and within sshGrace.
	stopped string
}

// lookAtSSHServer starts the OpenSSH server, unless the node is kept as it is.
func (a *Agent) lookAtSSHServer(ctx context.Context, n Node) {
	states, err := a.Engine.Host.Services(ctx, []string{sshService})
	if err != nil || len(states) != 1 || states[0].Status == plan.ServicePending {
		return
	}
	s, now := &a.sshServer, a.sinceBoot()
	if states[0].Status != plan.ServiceStopped || states[0].Start == plan.StartDisabled {
		*s = sshServer{}
		return
	}
	if !s.missing {
		s.missing, s.since, s.startAt = true, now, now+sshGrace
	}
	switch {
	case now < s.since+sshGrace:
	case n.Paused || a.Options.ReportOnly:
		a.noteSSHServer(ctx, "it is stopped")
	case now >= s.startAt:
		s.startAt = now + sshRetry
		if err := a.startSSHServer(ctx); err != nil {
			if ctx.Err() == nil {
				a.noteSSHServer(ctx, err.Error())
			}
			return
		}
		a.Log.Warn("the OpenSSH server was stopped: started it")
		if s.stopped == "" {
			a.sendEventToNode(ctx, Event{Warning: true, Reason: EventSSHStarted, Message: "the OpenSSH server was stopped, and was started"})
		}
	case s.stopped == "":
		a.noteSSHServer(ctx, "it has ended again after it was started")
	}
}

// noteSSHServer reports why the OpenSSH server does not run, with an Event if that is another reason than before.
func (a *Agent) noteSSHServer(ctx context.Context, why string) {
	why = published.ShortenTo(why, maxUnknown)
	if why == a.sshServer.stopped {
		return
	}
	a.sshServer.stopped = why
	a.Log.Error("the OpenSSH server does not run", "reason", why)
	a.sendEventToNode(ctx, Event{Warning: true, Reason: EventSSHStopped,
		Message: "the OpenSSH server does not run, so the operator cannot log in: " + why})
}

// startSSHServer gives its folders the access that it wants, and starts it. What another user owns is theirs to fill:
// sshd refuses such a folder, and would follow their configuration in one that was put right.
func (a *Agent) startSSHServer(ctx context.Context) error {
	files, err := a.Engine.Host.Stat(ctx, []string{sshFolder, sshLogs, sshConfig})
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Kind != plan.FileAbsent && f.Owner != plan.OwnerAdmins {
			return fmt.Errorf("%s is a link or belongs to another user than Administrators and SYSTEM, who may have changed how logins work", f.Path)
		}
	}
	for i, access := range []bundle.Access{bundle.AccessUsers, bundle.AccessAdmins} {
		f := files[i]
		if f.Kind == plan.FileDirectory && f.Access == plan.AccessOther {
			err = errors.Join(err, a.Engine.Host.MakeDirectory(ctx, f.Path, access))
		}
	}
	return errors.Join(err, a.Engine.Host.StartService(ctx, sshService))
}
