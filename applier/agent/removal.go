package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/client-go/tools/clientcmd"

	"wmco/applier"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/layout"
)

// removal is the end of the node: bundle.RemovalService removes everything, the agent included. The agent only starts
// it, and sees that it runs for as long as the agent itself does.
type removal struct {
	// node is the UID of the Node that ends; empty while no removal has begun.
	node string
	// failed is why it could not be started.
	failed string
}

// removesItself reports whether the agent can remove everything, itself included.
func (a *Agent) removesItself() bool { return a.Cluster != nil && a.Engine.Self != "" }

// recallRemoval notes a removal that an earlier process has begun.
func (a *Agent) recallRemoval(ctx context.Context) {
	node, err := a.Engine.PendingRemoval(ctx)
	if err != nil { // the annotation is there still
		a.Log.Warn("looking for a removal", "error", err)
	}
	if node != "" {
		a.Log.Info("the removal of this host is continued", "node", node)
	}
	a.removal.node = node
}

// beginRemoval starts the removal for which the operator has signed. The operator has drained the node. What fails is
// reported, and retried.
func (a *Agent) beginRemoval(ctx context.Context, n Node) {
	access, err := a.Cluster.OwnKubeconfig()
	if err == nil {
		err = a.checkKubelet(ctx, access)
	}
	if err == nil {
		err = a.Engine.BeginRemoval(ctx, applier.Removal{Node: n.UID, Access: access, LogDir: a.Options.LogDir}, lockWait)
	}
	var locked *applier.LockedError
	switch {
	case ctx.Err() != nil: // it was asked to stop, perhaps by what it has started
		return
	case errors.As(err, &locked):
		a.follower.noteRetry(a.sinceBoot(), a.Options.Jitter)
		return
	case err != nil:
		a.follower.noteRetry(a.sinceBoot(), a.Options.Jitter)
		a.noteRemovalFailure(err)
		return
	}
	a.removal = removal{node: n.UID}
	a.follower.noteEnd(published.StateApplying, "everything is removed from the host, because its node ends")
	a.Log.Info("everything is removed from this host", "node", n.UID, "service", bundle.RemovalService)
	a.sendReport(ctx)
}

// checkKubelet refuses to remove a kubelet that has become one of another cluster than that which access is for: then the
// host is no longer ours.
func (a *Agent) checkKubelet(ctx context.Context, access []byte) error {
	data, err := a.readFile(layout.FileKubeconfig)(ctx)
	if err != nil {
		return err
	}
	if has, own := serverOf(data), serverOf(access); has != "" && has != own {
		return fmt.Errorf("the kubelet of the host belongs to another cluster, whose API server is %q; nothing was changed on it", has)
	}
	return nil
}

// serverOf returns the URL of the API server of a kubeconfig; empty if that has none.
func serverOf(kubeconfig []byte) string {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return ""
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil {
		return ""
	}
	return config.Clusters[current.Cluster].Server
}

// continueRemoval starts the service again if it does not run.
func (a *Agent) continueRemoval(ctx context.Context) {
	err := a.Engine.BeginRemoval(ctx, applier.Removal{Node: a.removal.node, LogDir: a.Options.LogDir}, lockWait)
	var locked *applier.LockedError
	switch {
	case ctx.Err() != nil, errors.As(err, &locked): // it works
	case errors.Is(err, applier.ErrNoRemoval): // another run has ended it, and the annotation is there still
		a.removal = removal{}
		a.follower.retryAt, a.repairAt = a.sinceBoot(), a.sinceBoot()+a.Options.Interval
	case err != nil:
		a.noteRemovalFailure(err)
	default:
		a.removal.failed = ""
	}
	a.sendReport(ctx)
}

func (a *Agent) noteRemovalFailure(err error) {
	if a.removal.failed != err.Error() {
		a.Log.Error("starting the removal of everything from this host", "error", err)
	}
	a.removal.failed = err.Error()
	a.follower.report.State, a.follower.report.Message = published.StateFailed, err.Error()
}

// reportRemoval adds how far the removal is, and that this agent can do it.
func (a *Agent) reportRemoval(r *published.Report) {
	if a.removesItself() {
		r.Features = slices.Sorted(slices.Values(append(r.Features, published.FeatureRemove)))
	}
	r.Removal = published.RemovalProgress{Node: a.removal.node, Message: a.removal.failed}
}
