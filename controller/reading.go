package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/controller/base"
	"wmco/controller/desired"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/join"
	"wmco/controller/signing"
	"wmco/render/reason"
)

// reading reads the inputs, with what the resolver says about instances that are given by name.
type reading struct {
	source desired.Source
	// keys are those that sign what is published: their public halves are in every bundle.
	keys      *signing.Keys
	reader    client.Reader
	namespace string
	resolver  join.Resolver
	now       func() time.Time
	records   *hosts.Records
	log       logr.Logger

	// mu guards answers, by name.
	mu      sync.Mutex
	answers map[string]answer
}

// answer is what the resolver said about a name.
type answer struct {
	gather.Lookup
	at time.Time
}

const (
	// lookupKept is how long an answer is used. Each reading would ask again otherwise.
	lookupKept = time.Minute
	// lookupLimit is for one question.
	lookupLimit = 5 * time.Second
)

// read implements join.Inputs.
func (r *reading) read(ctx context.Context) (*desired.Hosts, error) {
	records, damaged, err := r.records.Cached(ctx)
	if err != nil {
		return nil, err
	}
	names, err := r.names(ctx)
	if err != nil {
		return nil, err
	}
	s := r.source
	s.Gather.Records = &records
	if s.SigningKeys, err = r.keys.Read(ctx); err != nil {
		return nil, err
	}
	if len(names) > 0 {
		s.Gather.Lookups = r.lookUp(ctx, names)
	}
	inputs, err := desired.Read(ctx, s)
	if err == nil && damaged != nil {
		inputs.Findings = append(inputs.Findings, bundle.Finding{
			Severity: bundle.SeverityWarning, Reason: reason.HostRecordDamaged, Object: bundle.Ref{Kind: "ConfigMap", Namespace: r.namespace},
			Message: damaged.Error(), Fix: "remove the record as the message says; the host is reached again as at its first contact",
		})
		r.log.Info("records of hosts that cannot be read", "error", damaged)
	}
	return inputs, err
}

// names returns the instances that are not given by address.
func (r *reading) names(ctx context.Context) ([]string, error) {
	u := base.NewObject(base.ConfigMapKind())
	if err := r.reader.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: join.InstancesName}, u); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", join.InstancesName, err)
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

// lookUp asks for all names at the same time: one that has no answer delays no other.
func (r *reading) lookUp(ctx context.Context, names []string) map[string]gather.Lookup {
	all := map[string]gather.Lookup{}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, name := range names {
		asking.Go(func() {
			l := r.one(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			all[name] = l
		})
	}
	asking.Wait()
	return all
}

func (r *reading) one(ctx context.Context, name string) gather.Lookup {
	r.mu.Lock()
	known, ok := r.answers[name]
	r.mu.Unlock()
	if ok && r.now().Sub(known.at) < lookupKept {
		return known.Lookup
	}
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	var l gather.Lookup
	list, err := r.resolver.LookupHost(ctx, name)
	if err != nil {
		l.Problem = problemOf(err)
	}
	for _, text := range list {
		if a, err := netip.ParseAddr(text); err == nil {
			l.Addresses = append(l.Addresses, a)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answers == nil {
		r.answers = map[string]answer{}
	}
	r.answers[name] = answer{l, r.now()}
	return l
}

// problemOf leaves out the address of the resolver, which differs from attempt to attempt.
func problemOf(err error) string {
	if d := (*net.DNSError)(nil); errors.As(err, &d) {
		return d.Err
	}
	return err.Error()
}
