// Package hostkeys has the controller that removes records and host keys of removed hosts.
package hostkeys

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"wmco/controller/base"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// Collector removes the records of hosts that are gone, with their host keys: another host may get the address, as it
// does on most clouds.
type Collector struct {
	// Live reads without a cache: a removed record cannot be restored.
	Live      client.Reader
	Login     *hosts.Login
	Namespace string
	Log       logr.Logger
}

// SetupWithManager watches what hosts are known by: all records are looked at whenever something is removed, and at the
// start. It returns what watches the Machines as well, once the cluster serves them.
func (c *Collector) SetupWithManager(m base.Manager) (watchMachines func() error, err error) {
	added, err := m.NewController("hostkeys", c, base.ParallelHosts)
	if err != nil {
		return nil, err
	}
	watchMachines = func() error {
		return added.Watch(source.Kind(m.GetCache(), base.NewObject(base.MachineKind()), base.EnqueueAll[base.Object](),
			base.OnlyDeletions[base.Object]()))
	}
	return watchMachines, errors.Join(
		added.Watch(source.Kind(m.GetCache(), &corev1.Node{}, base.EnqueueAll[*corev1.Node](),
			base.OnlyDeletions[*corev1.Node]())),
		added.Watch(source.Kind(m.GetCache(), base.NewObject(base.ConfigMapKind()),
			base.EnqueueAllAfter[base.Object](settle))),
		added.Watch(base.AtStart()),
	)
}

// settle is how long after a change of a ConfigMap all records are looked at. Each host that joins writes its record: a
// look at all hosts for each of them would list all Machines and Nodes as often as there are hosts.
const settle = 5 * time.Second

// Reconcile looks at all records. One whose Machine exists, whose entry is in windows-instances, or whose Node exists
// is kept: a Node whose host is away is still the same host, and is removed step by step (Nodes).
func (c *Collector) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	// Read first: a host that is recorded later is not missing in the next list.
	records, err := c.Login.Records.LiveRecords(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	is, err := c.observeHosts(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	for _, id := range records.IDs() {
		r, _ := records.RecordByID(id)
		if is.hasHost(r) {
			continue
		}
		forgotten, err := c.Login.Records.ForgetUnchanged(ctx, r)
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("forgetting %s: %w", r, err)
		}
		if forgotten {
			c.Log.Info("forgot a host that no longer exists", "host", r.String(), "address", r.Address, "node", r.Node)
		}
	}
	if is.unserved {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, c.Login.ForgetPins(ctx, func(p hosts.Pin) bool {
		return !is.addresses[strings.ToLower(p.Address)]
	})
}

// existing is what the cluster has.
type existing struct {
	// machines are the UIDs of Machines, nodes the UIDs of Windows Nodes by their names, entries those of
	// windows-instances.
	machines map[types.UID]bool
	nodes    map[string]types.UID
	entries  map[record.ID]bool
	// addresses are those of Machines and entries.
	addresses map[string]bool
	// unserved is true while the cluster does not serve Machines, or refuses to list them: whether one was deleted is
	// not known then.
	unserved bool
}

// hasHost reports whether the host of a record is still one of the cluster. Without any entry that of an instance is:
// the ConfigMap may be gone by mistake.
func (e existing) hasHost(r record.Record) bool {
	if r.Machine != "" {
		return e.unserved || e.machines[r.Machine]
	}
	uid, ok := e.nodes[r.Node]
	return len(e.entries) == 0 || e.entries[r.ID()] || ok && uid == r.NodeUID
}

func (c *Collector) observeHosts(ctx context.Context) (existing, error) {
	is := existing{machines: map[types.UID]bool{}, nodes: map[string]types.UID{}, entries: map[record.ID]bool{},
		addresses: map[string]bool{}}
	var machines machinev1beta1.MachineList
	switch err := c.Live.List(ctx, &machines, client.InNamespace(base.MachinesNamespace)); {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err), runtime.IsNotRegisteredError(err),
		apierrors.IsForbidden(err):
		// not found: by a client that has known the kind
		is.unserved = true
	case err != nil:
		return existing{}, fmt.Errorf("listing Machines: %w", err)
	}
	for _, m := range machines.Items {
		is.machines[m.UID] = true
		for _, a := range m.Status.Addresses {
			is.addresses[strings.ToLower(a.Address)] = true
		}
	}
	nodes := base.MetadataList(base.NodeKind())
	if err := c.Live.List(ctx, nodes); err != nil {
		return existing{}, fmt.Errorf("listing Nodes: %w", err)
	}
	for _, n := range nodes.Items {
		is.nodes[n.Name] = n.UID
	}
	var instances corev1.ConfigMap
	if err := c.Live.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: render.InstancesConfigMap},
		&instances); client.IgnoreNotFound(err) != nil {
		return existing{}, fmt.Errorf("reading ConfigMap %s: %w", render.InstancesConfigMap, err)
	}
	for entry := range instances.Data {
		is.entries[record.OfEntry(entry)], is.addresses[strings.ToLower(strings.TrimSpace(entry))] = true, true
	}
	return is, nil
}
