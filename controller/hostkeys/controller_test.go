package hostkeys

import (
	"context"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"wmco/controller/windowsnode/record"
)

// TestMachinesAreNotGoneBecauseTheirKindIs: its definition may be replaced, and the host keys of all Machines would be forgotten.
func TestMachinesAreNotGoneBecauseTheirKindIs(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, machinev1beta1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for name, served := range map[string]bool{"served": true, "not served": false} {
		live := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			if _, machines := list.(*machinev1beta1.MachineList); machines && !served {
				return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: machinev1beta1.GroupName, Kind: "Machine"}}
			}
			return c.List(ctx, list, o...)
		}})
		is, err := (&Collector{Live: live, Namespace: "n"}).observeHosts(t.Context())
		if err != nil || is.hasHost(record.Record{Machine: "uid"}) == served {
			t.Errorf("%s: the host of a Machine is one of the cluster: %t, %v", name, is.hasHost(record.Record{Machine: "uid"}), err)
		}
	}
}
