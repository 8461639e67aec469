package join

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/controller/hosts"
)

// Pins forgets the host keys of hosts that are gone: another host may get the address, as it does on most clouds.
type Pins struct {
	// Reader is a cache of Windows Machines, Windows Nodes and the ConfigMap, unstructured.
	Reader    client.Reader
	Login     *hosts.Login
	Namespace string
	Log       logr.Logger
}

// Reconcile looks at all pins. One whose address a Machine, an entry of windows-instances or a Node still has is kept: a Node whose host is
// away is still the same host.
func (p *Pins) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	// Read first: a host that is pinned later is not missing in what is read next.
	pinned, err := p.Login.PinnedHosts(ctx)
	if err != nil || len(pinned) == 0 {
		return reconcile.Result{}, err
	}
	known, err := p.known(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	for _, host := range pinned {
		if known[strings.ToLower(host)] {
			continue
		}
		if err := p.Login.Forget(ctx, host); err != nil {
			return reconcile.Result{}, fmt.Errorf("forgetting the host key of %s: %w", host, err)
		}
		p.Log.Info("forgot the host key of a host that is gone", "address", host)
	}
	return reconcile.Result{}, nil
}

// known are the addresses and names that somebody has.
func (p *Pins) known(ctx context.Context) (map[string]bool, error) {
	known := map[string]bool{}
	for _, kind := range []schema.GroupVersionKind{machinev1beta1.GroupVersion.WithKind("MachineList"), corev1.SchemeGroupVersion.WithKind("NodeList")} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := p.Reader.List(ctx, list); err != nil && !meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
		}
		for _, u := range list.Items {
			known[strings.ToLower(u.GetAnnotations()[InstanceAnnotation])] = true
			addresses, _, _ := unstructured.NestedSlice(u.Object, "status", "addresses")
			for _, a := range addresses {
				if m, ok := a.(map[string]any); ok {
					text, _ := m["address"].(string)
					known[strings.ToLower(text)] = true
				}
			}
		}
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if err := p.Reader.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: InstancesName}, u); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", InstancesName, err)
	}
	entries, _, _ := unstructured.NestedStringMap(u.Object, "data")
	for entry := range entries {
		known[strings.ToLower(strings.TrimSpace(entry))] = true
	}
	return known, nil
}
