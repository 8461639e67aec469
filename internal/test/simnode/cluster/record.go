package cluster

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/remote"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode/record"
)

// recordPause is the time between two looks at the Nodes.
const recordPause = 200 * time.Millisecond

// Record writes the operator's record of each Windows Node that has none and is not to be adopted, until the context
// ends: it stands for the joins over SSH of an operator that reaches no hosts. A Node is the host of the Machine or the
// entry of windows-instances with its address, or of a Machine that is not there.
func Record(ctx context.Context, admin *rest.Config, log *slog.Logger) error {
	c, err := newClient(admin)
	if err != nil {
		return err
	}
	for {
		if err := recordNodes(ctx, c); err != nil && ctx.Err() == nil {
			log.Warn("recording which hosts Nodes are", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(recordPause):
		}
	}
}

// RecordNodes is Record for the Nodes that there are now.
func RecordNodes(ctx context.Context, admin *rest.Config) error {
	c, err := newClient(admin)
	if err != nil {
		return err
	}
	return recordNodes(ctx, c)
}

// recordNodes writes the records that are missing.
func recordNodes(ctx context.Context, c client.Client) error {
	records := &hosts.Records{Live: c, Client: c, Namespace: gather.OperatorNamespace}
	known, err := records.LiveRecords(ctx)
	if err != nil {
		return err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := c.List(ctx, list, client.MatchingLabels{corev1.LabelOSStable: "windows"}); err != nil {
		return err
	}
	missing := slices.DeleteFunc(list.Items, func(n metav1.PartialObjectMetadata) bool {
		_, ok := known.OfNode(n.Name, n.UID)
		return ok || n.DeletionTimestamp != nil || n.Annotations[published.AdoptAnnotation] != ""
	})
	if len(missing) == 0 {
		return nil
	}
	machines, err := machinesByAddress(ctx, c)
	if err != nil {
		return err
	}
	var instances corev1.ConfigMap
	if err := c.Get(
		ctx, client.ObjectKey{Namespace: gather.OperatorNamespace, Name: "windows-instances"}, &instances,
	); client.IgnoreNotFound(err) != nil {
		return err
	}
	for _, m := range missing {
		var n corev1.Node
		if err := c.Get(ctx, client.ObjectKeyFromObject(&m), &n); err != nil {
			return client.IgnoreNotFound(err)
		}
		of := recordOf(n, machines, instances.Data)
		err := records.UpdateRecord(ctx, of.ID(), func(r record.Record) (record.Record, error) {
			of.HostKey = r.HostKey
			return of, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func machinesByAddress(ctx context.Context, c client.Client) (map[string]machinev1beta1.Machine, error) {
	var machines machinev1beta1.MachineList
	if err := c.List(ctx, &machines); err != nil && !meta.IsNoMatchError(err) {
		return nil, err
	}
	all := map[string]machinev1beta1.Machine{}
	for _, m := range machines.Items {
		for _, a := range m.Status.Addresses {
			all[a.Address] = m
		}
	}
	return all, nil
}

// recordOf returns the record of a Node: it is the host of the Machine or the entry with its address, or of a Machine
// that is not there.
func recordOf(n corev1.Node, machines map[string]machinev1beta1.Machine, entries map[string]string) record.Record {
	r := record.Record{Machine: n.UID, Node: n.Name, NodeUID: n.UID, Account: remote.DefaultUser, Origin: record.OriginJoined}
	for _, a := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err != nil || !ip.Is4() {
			continue
		}
		r.Address = a.Address
		if m, ok := machines[a.Address]; ok {
			r.Machine, r.MachineName = m.UID, m.Name
		} else if _, ok := entries[a.Address]; ok {
			r.Machine, r.Entry = "", a.Address
		}
		break
	}
	return r
}
