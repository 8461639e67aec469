package inputs

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"wmco/controller/base"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// resolver notes the names that it is asked about. Its answer is one address where it has none.
type resolver struct{ asked, answer []string }

// LookupHost implements Resolver.
func (r *resolver) LookupHost(_ context.Context, name string) ([]string, error) {
	r.asked = append(r.asked, name)
	if r.answer != nil {
		return r.answer, nil
	}
	return []string{"192.0.2.7"}, nil
}

// instances is a cluster whose windows-instances has these names.
func instances(t *testing.T, names ...string) client.Client {
	t.Helper()
	u := base.NewObject(base.ConfigMapKind())
	u.SetNamespace(gather.OperatorNamespace)
	u.SetName(render.InstancesConfigMap)
	for _, n := range names {
		if err := unstructured.SetNestedField(u.Object, "username=admin", "data", n); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithObjects(u).Build()
}

// TestProposedObjectsAskNoResolver: whoever proposes a thousand names has nothing asked of the cluster's DNS, and nothing kept. What the operator knows about
// its own names is used.
func TestProposedObjectsAskNoResolver(t *testing.T) {
	var names resolver
	own := instances(t, "win-a.example.com")
	r := &Reader{
		Cache: own, Namespace: gather.OperatorNamespace, Resolver: &names, Now: time.Now,
		Keys:    func(context.Context) ([]byte, error) { return nil, nil },
		Records: func(context.Context) (record.Set, error, error) { return record.Set{}, nil, nil },
	}
	r.Source.Objects = objects.NewClusterReader(own)
	read, err := r.Read(t.Context())
	if err != nil || read.WithoutCredentials {
		t.Fatalf("without credentials %t, %v", read.WithoutCredentials, err)
	}
	proposal := []string{"win-a.example.com"}
	for i := range 1000 {
		proposal = append(proposal, fmt.Sprintf("win-%d.example.com", i))
	}
	proposed, err := r.ReadProposed(t.Context(), instances(t, proposal...))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"win-a.example.com"}, names.asked); diff != "" || len(r.answers) != 1 {
		t.Errorf("%d answers are kept; asked (-want +got):\n%s", len(r.answers), diff)
	}
	if !proposed.WithoutCredentials {
		t.Error("what is proposed is rendered with credentials")
	}
	for _, i := range proposed.Instances {
		if known := i.Address == "win-a.example.com"; known != (len(i.Addresses) == 1) {
			t.Errorf("%s has the addresses %q", i.Address, i.Addresses)
		}
	}
}

// TestOfManyAddressesOfANameAFewAreKept, the same ones whatever their order is: a host may write its own names in the DNS, and its record has what they are.
func TestOfManyAddressesOfANameAFewAreKept(t *testing.T) {
	names := resolver{answer: []string{"2001:db8::1"}}
	for i := range 2 * mostResolved {
		names.answer = append(names.answer, fmt.Sprintf("192.0.2.%d", 2*mostResolved-i))
	}
	got := (&Reader{Resolver: &names, Now: time.Now}).resolveName(t.Context(), "win-a.example.com").Addresses
	if first, last := got[0].String(), got[len(got)-1].String(); len(got) != mostResolved || first != "192.0.2.1" || last != "192.0.2.64" {
		t.Errorf("%d addresses, from %s to %s", len(got), first, last)
	}
}
