package inputs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/base"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/desired"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// Reader reads the inputs from the cache of the operator, with the resolver's answers for instances that are given by
// name.
type Reader struct {
	// Source reads the objects of the cluster and gathers them.
	Source desired.Source
	// Nodes returns the Windows Nodes of the cache, decoded; nil reads them as the other objects of Source.
	Nodes func(context.Context) ([]windowsnode.Node, error)
	// Keys are those that sign desired bundles: their public halves are in every bundle.
	Keys func(context.Context) ([]byte, error)
	// LoginKey returns the public key with which the operator logs in to hosts (hosts.Login.ReadPublicKey); nil where
	// it reaches none.
	LoginKey func(context.Context) (string, error)
	// Image returns the image that the operator runs, empty where nodes cannot use it; nil is none.
	Image func(context.Context) (string, error)
	// Cache reads objects of the operator's namespace, Namespace.
	Cache     client.Reader
	Namespace string
	Resolver  Resolver
	Now       func() time.Time
	// Records returns the records of hosts from a cache, and the errors of those that cannot be read.
	Records func(context.Context) (all record.Set, damaged, err error)
	Log     logr.Logger

	// mu guards answers, by name.
	mu      sync.Mutex
	answers map[string]answer
}

// Resolver looks up names; net.Resolver is one.
type Resolver interface {
	LookupHost(ctx context.Context, host string) ([]string, error)
}

// answer is the resolver's answer for a name.
type answer struct {
	gather.Lookup
	at time.Time
}

const (
	// lookupKept is how long an answer is used. Each reading would ask again otherwise.
	lookupKept = time.Minute
	// lookupLimit is for one question.
	lookupLimit = 5 * time.Second
	// mostResolved is how many addresses of a name are looked at. They are kept in the record of the host, which may
	// write its own names in the DNS: an answer has room for thousands.
	mostResolved = 64
)

// Read returns the hosts that the cluster wants, with the findings about them.
func (r *Reader) Read(ctx context.Context) (*desired.Hosts, error) {
	s := r.Source
	if r.Nodes != nil {
		// otherwise the reader of objects reports why Nodes cannot be listed, as of any kind
		if nodes, err := r.Nodes(ctx); err == nil {
			s.Gather.Nodes = nodes
		}
	}
	return r.readFrom(ctx, s, r.Cache, r.resolveNames)
}

// ReadProposed is Read for other objects than those of Source, which any user may have proposed: no credential is among
// the inputs, and no resolver is asked about a name that only they have.
func (r *Reader) ReadProposed(ctx context.Context, from client.Reader) (*desired.Hosts, error) {
	s := r.Source
	s.Objects, s.WithoutCredentials = objects.NewClusterReader(from), true
	return r.readFrom(ctx, s, from, r.recallNames)
}

func (r *Reader) readFrom(ctx context.Context, s desired.Source, from client.Reader,
	lookUp func(context.Context, []string) map[string]gather.Lookup) (*desired.Hosts, error) {
	records, damaged, err := r.Records(ctx)
	if err != nil {
		return nil, err
	}
	names, err := r.namedInstances(ctx, from)
	if err != nil {
		return nil, err
	}
	s.Gather.Records, s.Gather.RecordKey = &records, s.Key
	if s.SigningKeys, err = r.Keys(ctx); err != nil {
		return nil, err
	}
	if r.LoginKey != nil {
		if s.LoginKey, err = r.LoginKey(ctx); err != nil {
			return nil, err
		}
	}
	if r.Image != nil {
		if s.Image, err = r.Image(ctx); err != nil {
			return nil, err
		}
	}
	if len(names) > 0 {
		s.Gather.Lookups = lookUp(ctx, names)
	}
	inputs, err := desired.ReadHosts(ctx, s)
	if err == nil && damaged != nil {
		inputs.Findings = append(inputs.Findings, bundle.Finding{
			Severity: bundle.SeverityWarning, Reason: reason.HostRecordDamaged,
			Object:  bundle.Ref{Kind: "ConfigMap", Namespace: r.Namespace},
			Message: damaged.Error(), Fix: "remove the record with the command in the message; the host is reached again as at its first contact",
		})
		r.Log.Info("records of hosts that cannot be read", "error", damaged)
	}
	return inputs, err
}

// namedInstances returns the instances that are not given by address.
func (r *Reader) namedInstances(ctx context.Context, from client.Reader) ([]string, error) {
	u := base.NewObject(base.ConfigMapKind())
	if err := from.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: render.InstancesConfigMap},
		u); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", render.InstancesConfigMap, err)
	}
	entries, _, _ := unstructured.NestedStringMap(u.Object, "data")
	var names []string
	for name := range entries {
		if _, err := netip.ParseAddr(name); err != nil {
			names = append(names, name)
		}
	}
	return names, nil
}

// resolveNames asks for all names at the same time: one that has no answer delays no other.
func (r *Reader) resolveNames(ctx context.Context, names []string) map[string]gather.Lookup {
	all := map[string]gather.Lookup{}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, name := range names {
		asking.Go(func() {
			l := r.resolveName(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			all[name] = l
		})
	}
	asking.Wait()
	return all
}

// recallNames returns the last answers about names. Those that were not looked up are not judged
// (gather.Options.Lookups).
func (r *Reader) recallNames(_ context.Context, names []string) map[string]gather.Lookup {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]gather.Lookup{}
	for _, name := range names {
		if known, ok := r.answers[name]; ok {
			all[name] = known.Lookup
		}
	}
	return all
}

func (r *Reader) resolveName(ctx context.Context, name string) gather.Lookup {
	r.mu.Lock()
	known, ok := r.answers[name]
	r.mu.Unlock()
	if ok && r.Now().Sub(known.at) < lookupKept {
		return known.Lookup
	}
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	var l gather.Lookup
	list, err := r.Resolver.LookupHost(ctx, name)
	if err != nil {
		l.Problem = resolverProblem(err)
	}
	for _, text := range list {
		if a, err := netip.ParseAddr(text); err == nil {
			l.Addresses = append(l.Addresses, a)
		}
	}
	slices.SortFunc(l.Addresses, netip.Addr.Compare) // the same ones each time
	l.Addresses = l.Addresses[:min(len(l.Addresses), mostResolved)]
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answers == nil {
		r.answers = map[string]answer{}
	}
	r.answers[name] = answer{l, r.Now()}
	return l
}

// resolverProblem leaves out the address of the resolver, which differs from attempt to attempt.
func resolverProblem(err error) string {
	if d := (*net.DNSError)(nil); errors.As(err, &d) {
		return d.Err
	}
	return err.Error()
}
