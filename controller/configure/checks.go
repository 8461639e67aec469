package configure

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/controller/configure/checks"
	"wmco/controller/hosts"
	"wmco/controller/inputs/deletions"
	"wmco/controller/inputs/desired"
	"wmco/payload"
	"wmco/render"
)

// Checks judges whether hosts can join the cluster now.
type Checks struct {
	Live  client.Reader
	Login *hosts.Login
	// Versions returns the versions that the API servers report.
	Versions func(context.Context) ([]string, error)
	// Payload are the executables that the operator has.
	Payload payload.Set
	Now     func() time.Time
	// Held returns why a change of the inputs is held, or an empty text. New hosts do not join while it is held, because
	// they would get it. Held may be nil.
	Held func(context.Context, *desired.Hosts) (string, error)
}

// JudgeCluster checks whether hosts can join. It also returns the trusted CAs that it read for that.
func (c *Checks) JudgeCluster(ctx context.Context, inputs *desired.Hosts) (checks.Result, checks.TrustedCA, error) {
	trusted := checks.TrustedCA{Proxy: !inputs.Cluster.Proxy.IsZero()}
	if trusted.Proxy {
		if err := c.Live.Get(ctx, client.ObjectKey{Namespace: c.Login.Namespace, Name: render.TrustedCAConfigMap},
			&trusted.ConfigMap); client.IgnoreNotFound(err) != nil {
			return checks.Result{}, trusted, fmt.Errorf("reading ConfigMap %s: %w", render.TrustedCAConfigMap, err)
		}
	}
	_, found, err := c.Login.PrivateKey(ctx)
	if err != nil {
		return checks.Result{}, trusted, err
	}
	versions, err := c.Versions(ctx)
	if err != nil {
		return checks.Result{}, trusted, fmt.Errorf("asking for the version of the API server: %w", err)
	}
	held, err := c.heldFindings(ctx, inputs)
	if err != nil {
		return checks.Result{}, trusted, err
	}
	return checks.JudgeCluster(checks.Cluster{
		Findings: slices.Concat(found, held, inputs.Findings), APIServers: versions,
		Kubelet: inputs.Cluster.KubeletVersion(), TrustedCA: trusted, Payload: c.Payload, Now: c.Now(),
	}), trusted, nil
}

// heldFindings returns the findings that prevent joins while a change is held.
func (c *Checks) heldFindings(ctx context.Context, inputs *desired.Hosts) (bundle.Findings, error) {
	var found bundle.Findings
	for _, f := range deletions.HoldingFindings(inputs.Findings) {
		if c.Held == nil {
			continue
		}
		why, err := c.Held(ctx, inputs)
		if err != nil {
			return nil, err
		}
		if why != "" {
			f.Severity, f.Message = bundle.SeverityError, "this change is not confirmed yet: "+f.Message
			f.Fix += "; or confirm it as in the condition InputsConfirmed"
			found = append(found, f)
		}
	}
	return found, nil
}

// WaitingFor returns why no host can join now; ok is false if hosts can join.
func WaitingFor(r checks.Result) (p Progress, ok bool) {
	if !r.JoinsWait {
		return Progress{}, false
	}
	for _, c := range r.Conditions {
		if !c.Met {
			return Progress{State: StateWaiting, Reason: c.Reason, Message: "no host joins now: " + c.Message,
				Fix: c.Fix, Again: AgainLater}, true
		}
	}
	return Progress{}, false
}
