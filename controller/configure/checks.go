package configure

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/configure/checks"
	"wmco/controller/hosts"
	"wmco/controller/inputs/desired"
	"wmco/payload"
	"wmco/render"
)

// Checks judges whether hosts can join the cluster now.
type Checks struct {
	Live  client.Reader
	Login *hosts.Login
	// Versions are those that API servers tell.
	Versions func(context.Context) ([]string, error)
	// Payload are the executables that the operator has.
	Payload payload.Set
	Now     func() time.Time
}

// Of judges the cluster, and returns what it was judged by of the trusted CAs.
func (c *Checks) Of(ctx context.Context, inputs *desired.Hosts) (checks.Result, checks.TrustedCA, error) {
	trusted := checks.TrustedCA{Proxy: !inputs.Cluster.Proxy.IsZero()}
	if trusted.Proxy {
		if err := c.Live.Get(ctx, client.ObjectKey{Namespace: c.Login.Namespace, Name: render.TrustedCAConfigMap}, &trusted.ConfigMap); client.IgnoreNotFound(err) != nil {
			return checks.Result{}, trusted, fmt.Errorf("reading ConfigMap %s: %w", render.TrustedCAConfigMap, err)
		}
	}
	_, found, err := c.Login.Key(ctx)
	if err != nil {
		return checks.Result{}, trusted, err
	}
	versions, err := c.Versions(ctx)
	if err != nil {
		return checks.Result{}, trusted, fmt.Errorf("asking for the version of the API server: %w", err)
	}
	return checks.Of(checks.Cluster{
		Findings: append(found, inputs.Findings...), APIServers: versions, Kubelet: inputs.Cluster.KubeletVersion(), TrustedCA: trusted, Payload: c.Payload, Now: c.Now(),
	}), trusted, nil
}

// WaitingFor says for what a host waits that may not join now; ok is false if it may.
func WaitingFor(r checks.Result) (p Progress, ok bool) {
	if !r.JoinsWait {
		return Progress{}, false
	}
	for _, c := range r.Conditions {
		if !c.Met {
			return Progress{State: StateWaiting, Reason: c.Reason, Message: "no host joins now: " + c.Message, Fix: c.Fix, Again: AgainLater}, true
		}
	}
	return Progress{}, false
}
