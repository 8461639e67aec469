// Package csr has the controller that approves certificate signing requests of known hosts. The rules are in
// certificates.
package csr

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"wmco/controller/base"
	"wmco/controller/configure"
	"wmco/controller/csr/certificates"
	"wmco/controller/hosts"
	"wmco/controller/inputs/desired"
	"wmco/deploy/admission"
	"wmco/render"
)

// Resolver looks up names and addresses; net.Resolver is one.
type Resolver interface {
	LookupHost(ctx context.Context, host string) ([]string, error)
	LookupAddr(ctx context.Context, address string) ([]string, error)
}

// Approver approves the certificate signing requests of managed hosts. The rules are in controller/csr/certificates.
type Approver struct {
	Inputs   configure.Inputs
	Hosts    *hosts.Hosts
	Records  *hosts.Records
	Resolver Resolver
	// Live reads without a cache: what decides about a certificate must be current.
	Live      client.Reader
	Client    client.Client
	Namespace string
	Events    events.EventRecorder
	Log       logr.Logger
	// Elapsed is a monotonic clock.
	Elapsed func() time.Duration

	// refused is since when requests are seen that are not approved.
	refused configure.Sightings
	// judging has the places of each host, by its ID.
	judging sync.Map
	// nodes are all Nodes, listed once for all requests that wait.
	nodes      base.Coalesced[[]clusterNode]
	listsNodes sync.Once
}

// lookupLimit is for one question to the resolver.
const lookupLimit = 10 * time.Second

// retryAsk is how long after a host did not answer it is asked again.
const retryAsk = 5 * time.Second

// SetupWithManager watches certificate signing requests as metadata: the one that is judged is read without a cache.
func (a *Approver) SetupWithManager(m base.Manager) error {
	c, err := m.NewHostController("csr", a, base.ParallelHosts)
	if err != nil {
		return fmt.Errorf("approving certificates: %w", err)
	}
	return c.Watch(source.Kind(m.GetCache(), base.MetadataOf(base.CertificateRequestKind()),
		&handler.TypedEnqueueRequestForObject[*metav1.PartialObjectMetadata]{}))
}

// Reconcile judges one request.
func (a *Approver) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var csr certificatesv1.CertificateSigningRequest
	if err := a.Live.Get(ctx, req.NamespacedName, &csr); err != nil {
		a.refused.ForgetHost(req.Name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	name := certificates.NodeName(&csr)
	if name == "" {
		return reconcile.Result{}, nil
	}
	inputs, err := a.Inputs(ctx)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the inputs: %w", err)
	}
	known := certificates.Known{Platform: inputs.Cluster.Platform, Hosts: a.managedHosts(inputs)}
	v := certificates.DecideRequest(&csr, known)
	if v.Host.ID() == "" {
		a.Log.V(1).Info("no known host has the name in a certificate signing request", "csr", csr.Name, "node", name)
		// A host that was not reached yet may still turn out to have the name.
		return reconcile.Result{RequeueAfter: a.requeueUnknownHost(known, csr)}, nil
	}
	free, ok := a.takePlace(v.Host.ID())
	if !ok {
		return reconcile.Result{RequeueAfter: a.requeueAsk(csr)}, nil
	}
	defer free()
	if err := a.addClusterFacts(ctx, inputs, v.Host, &known); err != nil {
		return reconcile.Result{}, err
	}
	if v = certificates.DecideRequest(&csr, known); v.Decision == certificates.Ask {
		by, err := a.withoutLogin(ctx, v.Host, known, inputs)
		if err != nil {
			return reconcile.Result{}, err
		}
		if judged := certificates.DecideRequest(&csr, by); judged.Decision == certificates.Approve {
			return reconcile.Result{}, a.executeVerdict(ctx, &csr, judged)
		}
		if err := a.askHostOverSSH(ctx, &csr, inputs, v.Host, &known); err != nil {
			a.Log.Info("a host cannot be asked about its certificate", "csr", csr.Name, "host", v.Host.ID(),
				"error", err)
			return reconcile.Result{RequeueAfter: a.requeueAsk(csr)}, nil
		}
		if v = certificates.DecideRequest(&csr, known); v.Decision == certificates.Ask {
			a.Log.Info("host has no pending CSR", "csr", csr.Name, "host", v.Host.ID())
			return reconcile.Result{RequeueAfter: a.requeueAsk(csr)}, nil
		}
		if err := a.noteServed(ctx, v); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: a.requeueUnapproved(csr, v)}, a.executeVerdict(ctx, &csr, v)
}

// hostPlaces is how many requests of one host are judged at a time: whoever has the identity of one node may make as
// many as they like, and so may whoever has the bootstrap token, in the name of any host. The other hosts have the
// other places.
const hostPlaces = 8

// takePlace returns what gives a place of the host back, and whether there was one.
func (a *Approver) takePlace(host string) (free func(), ok bool) {
	stored, _ := a.judging.LoadOrStore(host, make(chan struct{}, hostPlaces))
	places := stored.(chan struct{}) //nolint:forcetypeassert // stored above
	select {
	case places <- struct{}{}:
		return func() { <-places }, true
	default:
		return nil, false
	}
}

// requeueAsk returns when to look again at a request whose host could not be asked: a host that is there again is asked
// within a minute.
func (a *Approver) requeueAsk(csr certificatesv1.CertificateSigningRequest) time.Duration {
	return min(a.requeueAged(csr, retryAsk), configure.AgainLater)
}

// lookLimit is the longest time between two looks at a request that is not approved.
const lookLimit = time.Hour

// requeueUnapproved returns when to look again at a request that is not approved: the problem may be fixed by then.
// Old ones are looked at less and less often, because each look may cost a question to the host, and whoever has the
// bootstrap token can make many.
func (a *Approver) requeueUnapproved(csr certificatesv1.CertificateSigningRequest,
	v certificates.Verdict) time.Duration {
	if v.Decision == certificates.Approve {
		return 0
	}
	return a.requeueAged(csr, configure.AgainLater)
}

// requeueAged returns how long a request has been there, at least this time.
func (a *Approver) requeueAged(csr certificatesv1.CertificateSigningRequest, shortest time.Duration) time.Duration {
	return min(max(shortest, a.refused.SeenFor(csr.Name, string(csr.UID), a.Elapsed())), lookLimit)
}

// requeueUnknownHost returns when to look again at a request for a name that no host has: as long as there are hosts
// whose name is not known.
func (a *Approver) requeueUnknownHost(k certificates.Known,
	csr certificatesv1.CertificateSigningRequest) time.Duration {
	pending := len(csr.Status.Conditions) == 0 && slices.ContainsFunc(k.Hosts, func(h certificates.Host) bool {
		return h.Machine == "" && h.Name == ""
	})
	if !pending {
		return 0
	}
	return a.requeueAged(csr, configure.AgainSoon)
}

// managedHosts are all that are managed, with the names that they have, or had when they were last reached.
func (a *Approver) managedHosts(inputs *desired.Hosts) []certificates.Host {
	var list []certificates.Host
	for _, n := range inputs.All {
		// A name that a host has had stays its own while its Node is away.
		id, r := inputs.RecordOf(n)
		h := certificates.Host{Name: cmp.Or(n.Name, r.Node)}
		switch n.Backing {
		case render.BackingInstance:
			h.Address = n.Address
			if h.Name == "" {
				n.Facts = a.Hosts.LastFacts(n.Address)
				h.Name = cmp.Or(n.KubernetesName(inputs.Cluster.Platform), n.ClaimedBy)
			}
			// A host that takes the name of another one keeps that one from nothing.
			if r.Node == "" && len(inputs.Records.OtherRecords(h.Name, id)) > 0 {
				h.Name = ""
			}
		case render.BackingMachine:
			h.Machine = n.MachineName
		case render.BackingNode:
			continue
		}
		list = append(list, h)
	}
	return list
}

// askHostOverSSH asks a host over SSH what it is, and puts the answer where the rule finds it.
func (a *Approver) askHostOverSSH(
	ctx context.Context, csr *certificatesv1.CertificateSigningRequest, inputs *desired.Hosts, h certificates.Host,
	k *certificates.Known,
) error {
	i := slices.IndexFunc(inputs.All, func(n render.Node) bool {
		return n.Backing == render.BackingInstance && n.Address == h.Address
	})
	if i < 0 {
		return fmt.Errorf("%s is not in the inputs", h.ID())
	}
	node := inputs.All[i]
	id, _ := inputs.RecordOf(node)
	target, err := a.Hosts.TargetOf(id, configure.LoginAccount(node, inputs.Cluster.Platform), node.Address)
	if err != nil {
		return err
	}
	facts, key, err := a.Hosts.AskPendingKey(ctx, target)
	if err != nil {
		return err
	}
	h.Facts, h.PendingKey, h.Lookups = facts, key.PublicKey, a.resolveAddress(ctx, h.Address)
	h.Name = configure.NameByFacts(node, facts, inputs.Cluster.Platform)
	if len(certificates.AddressesToReach(csr, h, *k)) > 0 {
		k.Reserved = append(k.Reserved, a.resolveReserved(ctx, inputs.Reserved)...)
		h.Reached, err = a.reachAddresses(ctx, inputs, node, facts.HostName, certificates.AddressesToReach(csr, h, *k))
		if err != nil {
			return err
		}
	}
	at := slices.IndexFunc(k.Hosts, func(other certificates.Host) bool { return other.ID() == h.ID() })
	k.Hosts[at] = h
	return nil
}

// resolveAddress asks the resolver about an address or a name. That it has no answer is one, too.
func (a *Approver) resolveAddress(ctx context.Context, address string) []string {
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	look := a.Resolver.LookupHost
	if _, err := netip.ParseAddr(address); err == nil {
		look = a.Resolver.LookupAddr
	}
	list, err := look(ctx, address)
	if err != nil {
		return nil
	}
	return list
}

var _ Resolver = (*net.Resolver)(nil)

// checkAdmissionPolicy returns an error unless the admission policy is there that holds a cloud-node-manager to its own
// Node.
func (a *Approver) checkAdmissionPolicy(ctx context.Context) error {
	policy, binding := admission.CloudNodeManager()
	for _, o := range []client.Object{policy, binding} {
		if err := a.Live.Get(ctx, client.ObjectKeyFromObject(o),
			base.MetadataOf(o.GetObjectKind().GroupVersionKind())); err != nil {
			return fmt.Errorf("no certificate for cloud-node-manager before it is bound to its own Node: %w", err)
		}
	}
	return nil
}

// executeVerdict carries out the verdict.
func (a *Approver) executeVerdict(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	v certificates.Verdict) error {
	if v.Decision != certificates.Approve {
		if v.Message != "" {
			a.Events.Eventf(configure.InstanceReference(ctx, a.Live, a.Namespace, v.Host.Address), csr,
				corev1.EventTypeWarning, string(v.Reason), "Approve", "%s: %s", csr.Name, v.Message)
			a.Log.Info("a certificate signing request is not approved", "csr", csr.Name, "host", v.Host.ID(), "reason",
				v.Reason, "message", v.Message)
		}
		return nil
	}
	if csr.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName && v.Host.Address != "" {
		if err := a.Records.ReserveName(ctx, v.Host.Address, v.Host.Name); err != nil {
			return fmt.Errorf("approving a certificate of node %s for %s: %w", v.Host.Name, v.Host.Address, err)
		}
	}
	if csr.Spec.SignerName == certificatesv1.KubeAPIServerClientSignerName {
		if err := a.checkAdmissionPolicy(ctx); err != nil {
			return err
		}
	}
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: certificates.ApprovalReason,
		Message: "the request is that of " + v.Host.ID(),
	})
	// The resourceVersion that was read goes along: the judged request is the approved one.
	if err := a.Client.SubResource("approval").Update(ctx, csr); err != nil {
		if apierrors.IsConflict(err) {
			return err
		}
		return fmt.Errorf("approving %s: %w", csr.Name, err)
	}
	a.Log.Info("approved a certificate signing request", "csr", csr.Name, "host", v.Host.ID(), "signer",
		csr.Spec.SignerName)
	return nil
}
