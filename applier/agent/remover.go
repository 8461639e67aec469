package agent

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"wmco/applier"
	"wmco/bundle/published"
)

// RemovalCluster is what a Remover asks of the API server. APIServer implements it.
type RemovalCluster interface {
	// OwnNode returns the Node of this host as it is now. Where it does not exist, the error is ErrNoNode.
	OwnNode(ctx context.Context) (Node, error)
	// Report writes the annotation and the condition of the Node in one request.
	Report(ctx context.Context, s Status) error
}

// Remover removes everything from a host whose node ends, as bundle.RemovalService. It goes on where an earlier process
// was interrupted, and repeats what fails:
//
//	remove everything --> report --> remove record and kubeconfig --> retire
//
// It decides nothing: the agent has verified that the operator has signed the removal.
type Remover struct {
	Engine  *applier.Engine
	Cluster RemovalCluster
	Log     *slog.Logger
	// Jitter returns a time that differs from host to host and is about d; nil is d itself.
	Jitter func(d time.Duration) time.Duration

	// reported is what was last reported of a failure.
	reported string
}

// Run returns when nothing is left to do, or the context has ended.
func (r *Remover) Run(ctx context.Context) error {
	for tried := 0; ; tried++ {
		err := r.removeAll(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was asked to stop
		case err == nil:
			r.Log.Info("everything is removed from this host")
			return r.Engine.RetireRemoval(ctx)
		}
		pause := min(firstRetry<<min(tried, 16), lastRetry)
		if r.Jitter != nil {
			pause = r.Jitter(pause)
		}
		r.Log.Warn("removing everything from this host", "error", err, "retry", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-r.Engine.Clock.After(pause):
		}
	}
}

// removeAll is one try. Without a record there is nothing to do: another process has ended the removal, or this one was
// interrupted at its end.
func (r *Remover) removeAll(ctx context.Context) error {
	node, err := r.Engine.PendingRemoval(ctx)
	if err != nil || node == "" {
		return err
	}
	var locked *applier.LockedError
	switch _, err := r.Engine.ContinueRemoval(ctx, lockWait); {
	case errors.Is(err, applier.ErrNoRemoval):
		return nil
	case errors.As(err, &locked), ctx.Err() != nil: // no failure: another run is about to end
		return err
	case err != nil:
		r.reportFailure(ctx, node, err)
		return err
	}
	// Before the kubeconfig is removed: the operator waits for it.
	if err := r.reportEnd(ctx, node); err != nil {
		return err
	}
	return r.Engine.FinishRemoval(ctx, lockWait)
}

// lateReport is how long after the end a report of the agent may arrive that was on its way when the agent was stopped.
const lateReport = 5 * time.Second

// reportEnd reports the end, and once more where a late report of the agent has replaced that: nothing repeats it later.
func (r *Remover) reportEnd(ctx context.Context, node string) error {
	for {
		if err := r.report(ctx, published.RemovalProgress{Node: node, Done: true}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.Engine.Clock.After(lateReport):
		}
		n, err := r.Cluster.OwnNode(ctx)
		if errors.Is(err, ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		if now, err := published.DecodeReport(n.Report); n.UID != node || err == nil && now.Removal.Done {
			return nil
		}
	}
}

// reportFailure reports why something could not be removed, once.
func (r *Remover) reportFailure(ctx context.Context, node string, why error) {
	if text := why.Error(); text != r.reported {
		if err := r.report(ctx, published.RemovalProgress{Node: node, Message: text}); err != nil {
			r.Log.Warn("reporting", "error", err)
			return
		}
		r.reported = text
	}
}

// report writes how far it is, unless the Node is deleted: then no operator waits.
func (r *Remover) report(ctx context.Context, p published.RemovalProgress) error {
	n, err := r.Cluster.OwnNode(ctx)
	if errors.Is(err, ErrNoNode) || err == nil && n.UID != p.Node {
		return nil
	}
	if err != nil {
		return err
	}
	report, err := published.DecodeReport(n.Report)
	if err != nil {
		report = published.Report{Program: r.Engine.Program}
	}
	report.Removal, report.State, report.Message = p, published.StateApplying, "everything is removed from the host, because its node ends"
	if p.Message != "" {
		report.State, report.Message = published.StateFailed, p.Message
	}
	text, err := report.Encode()
	if err != nil {
		return err
	}
	now := r.Engine.Clock.Now()
	return r.Cluster.Report(ctx, Status{Text: text, State: report.State, Message: conditionText(report), Time: now, Changed: now})
}
