package csr

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/configure"
	"wmco/controller/csr/certificates"
	"wmco/controller/inputs/desired"
	"wmco/controller/windowsnode/record"
	"wmco/deploy/admission"
	"wmco/render"
)

// waiting are the annotations of a Node of the existing operator.
var waiting = map[string]string{published.VersionAnnotation: "10.20.0"}

// TestRequests are judged by what the cluster, the host and the resolver say. What is approved is the one case that is right; every other one
// differs in one thing.
func TestRequests(t *testing.T) {
	azure := func(c *cluster, policy ...client.Object) {
		c.inputs.Cluster.Platform, c.records = bundle.PlatformAzure, []record.Record{{Entry: "192.0.2.5", Node: "win-a"}}
		c.objects = append([]client.Object{node("win-a", "windows", nil)}, policy...)
	}
	// renews is for a recorded host that is off, or whose SSH server is not reached.
	renews := func(change func(*record.Record)) func(*testing.T, *cluster) {
		return func(_ *testing.T, c *cluster) {
			r := record.Record{Entry: "192.0.2.5", Node: "win-a", NodeUID: "uid-a", HostKey: "pinned", Address: "192.0.2.5"}
			if change != nil {
				change(&r)
			}
			n := node("win-a", "windows", nil)
			n.UID = "uid-a"
			c.records, c.network.hosts, c.objects = []record.Record{r}, nil, []client.Object{n}
			c.resolver["api.example.com"] = []string{"192.0.2.12"}
		}
	}
	policy, binding := admission.CloudNodeManager()
	for name, tt := range map[string]struct {
		request  ask
		change   func(*testing.T, *cluster)
		approved bool
		// event and failure are parts of the Event and of the error; empty for none.
		event, failure string
		again          time.Duration
		// asked are the commands that hosts were sent.
		asked int
	}{
		"the first certificate, for the key that the host waits with": {request: first("win-a"), approved: true, asked: 2},
		"the host waits with another key": {
			request: first("win-a"), event: "its key is not the one that the host waits with", again: configure.AgainLater, asked: 2,
			change: func(t *testing.T, c *cluster) {
				c.network.hosts["192.0.2.5"] = host{factsOf("WIN-A"), otherKey.public(t)}
			},
		},
		"the host has no key yet": {
			request: first("win-a"), again: retryAsk, asked: 2,
			change: func(_ *testing.T, c *cluster) { c.network.hosts["192.0.2.5"] = host{factsOf("WIN-A"), nil} },
		},
		"the host does not answer": {
			request: first("win-a"), again: retryAsk, asked: 1,
			change: func(_ *testing.T, c *cluster) {
				c.records, c.network.hosts = []record.Record{{Entry: "192.0.2.5", Node: "win-a"}}, nil
			},
		},
		"an address that no host can be reached at": {
			request: first("win-a"), again: retryAsk,
			change: func(_ *testing.T, c *cluster) { c.inputs.All[0].Address, c.inputs.All[0].Name = "a b", "win-a" },
		},
		"a name that no host has": {request: first("win-x")},
		"a name that no host has, while one was not reached yet": {
			request: first("win-x"), again: configure.AgainSoon,
			change: func(_ *testing.T, c *cluster) {
				c.inputs.All = append(c.inputs.All, render.Node{Backing: render.BackingInstance, Address: "192.0.2.6"})
			},
		},
		"a name that only a Node without a host has": {
			request: first("win-x"),
			change: func(_ *testing.T, c *cluster) {
				c.inputs.All = append(c.inputs.All, render.Node{Backing: render.BackingNode, Name: "win-x"})
			},
		},
		"a signer of another program": {request: ask{signer: "example.com/signer", subject: "system:node:win-a", group: "system:nodes"}},
		"a Node of the name exists": {
			request: first("win-a"), event: "a Node of this name exists", again: configure.AgainLater,
			change: func(_ *testing.T, c *cluster) { c.objects = []client.Object{node("win-a", "windows", nil)} },
		},
		"the host calls itself like a Node that is another host by its record": {
			request: first("win-b"), again: configure.AgainSoon,
			change: func(t *testing.T, c *cluster) {
				c.network.hosts["192.0.2.5"] = host{factsOf("WIN-B"), kubelet.public(t)}
				c.records = []record.Record{{Machine: "uid-b", Node: "win-b"}}
			},
		},
		"the host was recorded with another name": {
			request: first("win-a"),
			change:  func(_ *testing.T, c *cluster) { c.records = []record.Record{{Entry: "192.0.2.5", Node: "win-old"}} },
		},
		"the host does not have the name of the Node that reports its address": {
			request: first("win-a"), again: configure.AgainLater, asked: 2,
			change: func(t *testing.T, c *cluster) {
				c.inputs.All[0].ClaimedBy = "win-a"
				c.network.hosts["192.0.2.5"] = host{factsOf(""), kubelet.public(t)}
			},
		},
		"the name of the API server": {
			request: first("api-int.example.com"), event: "belongs to another host, or to the cluster", again: configure.AgainLater,
			change: func(t *testing.T, c *cluster) {
				c.network.hosts["192.0.2.5"] = host{factsOf("api-int.example.com"), kubelet.public(t)}
			},
		},
		"the name of a Machine": {
			request: first("machine-b"), event: "belongs to another host, or to the cluster", again: configure.AgainLater,
			change: func(t *testing.T, c *cluster) {
				c.network.hosts["192.0.2.5"] = host{factsOf("machine-b"), kubelet.public(t)}
				c.inputs.All = append(c.inputs.All, render.Node{Backing: render.BackingMachine, MachineName: "machine-b", MachineUID: "uid-b", Address: "192.0.2.7"})
			},
		},

		"a serving certificate for the host's own addresses": {
			request: serving("win-a", "win-a", "192.0.2.5"), approved: true, asked: 2,
		},
		"for a name that the resolver gives the entry": {
			request: serving("win-a", "win-a.example.com"), approved: true, asked: 2,
			change: func(_ *testing.T, c *cluster) { c.resolver["192.0.2.5"] = []string{"win-a.example.com."} },
		},

		"a node that waits for adoption, with the name that the resolver gives the entry": {
			request: serving("win-a", "win-a", "192.0.2.5"), approved: true,
			change: func(_ *testing.T, c *cluster) {
				c.objects, c.resolver["192.0.2.5"] = []client.Object{node("win-a", "windows", waiting)}, []string{"win-a.example.com."}
			},
		},
		"a node that waits for adoption, with an entry that is its name": {
			request: serving("win-a", "win-a.example.com"), approved: true,
			change: func(_ *testing.T, c *cluster) {
				c.inputs.All[0].Address, c.inputs.All[0].ClaimedBy = "win-a.example.com", "win-a"
				c.objects = []client.Object{node("win-a", "windows", waiting)}
			},
		},
		"a node that waits for adoption, whose entry has the address of the API server": {
			request: serving("win-a", "192.0.2.10"), again: retryAsk, asked: 1,
			change: func(_ *testing.T, c *cluster) {
				c.inputs.All[0].Address, c.inputs.All[0].ClaimedBy, c.network.hosts = "win-a.example.com", "win-a", nil
				c.objects, c.inputs.Reserved.Names = []client.Object{node("win-a", "windows", waiting)}, []string{"api.example.com"}
				c.resolver["win-a.example.com"], c.resolver["api.example.com"] = []string{"192.0.2.10"}, []string{"192.0.2.10"}
			},
		},
		"a node that waits for adoption, where the resolver gives the entry another name": {
			request: serving("win-a", "192.0.2.5"), again: retryAsk, asked: 1,
			change: func(_ *testing.T, c *cluster) {
				c.inputs.All[0].ClaimedBy, c.network.hosts = "win-a", nil
				c.objects, c.resolver["192.0.2.5"] = []client.Object{node("win-a", "windows", waiting)}, []string{"win-b.example.com."}
			},
		},
		"a node that waits for adoption and asks for more than the resolver gives": {
			request: serving("win-a", "192.0.2.77"), again: retryAsk, asked: 1,
			change: func(_ *testing.T, c *cluster) {
				c.inputs.All[0].ClaimedBy, c.network.hosts = "win-a", nil
				c.objects, c.resolver["192.0.2.5"] = []client.Object{node("win-a", "windows", waiting)}, []string{"win-a"}
			},
		},
		"a node that waits for nothing, with the name that the resolver gives the entry": {
			request: serving("win-a", "192.0.2.5"), again: retryAsk, asked: 1,
			change: func(_ *testing.T, c *cluster) {
				c.inputs.All[0].ClaimedBy, c.network.hosts = "win-a", nil
				c.objects, c.resolver["192.0.2.5"] = []client.Object{node("win-a", "windows", nil)}, []string{"win-a"}
			},
		},
		"a recorded host is asked, whatever its Node and the resolver have": {
			request: serving("win-a", "192.0.2.5"), again: retryAsk, asked: 1,
			change: func(_ *testing.T, c *cluster) {
				c.records, c.network.hosts = []record.Record{{Entry: "192.0.2.5", Node: "win-a"}}, nil
				c.objects, c.resolver["192.0.2.5"] = []client.Object{node("win-a", "windows", waiting)}, []string{"win-a"}
			},
		},

		"a recorded Node, for its name and its entry":        {request: serving("win-a", "win-a", "192.0.2.5"), approved: true, change: renews(nil)},
		"and for an address that its last one was for":       {request: serving("win-a", "192.0.2.5", "192.0.2.10"), approved: true, change: renews(func(r *record.Record) { r.Served = "192.0.2.9 192.0.2.10" })},
		"an address that its last one was not for":           {request: serving("win-a", "192.0.2.11"), again: retryAsk, asked: 1, change: renews(func(r *record.Record) { r.Served = "192.0.2.10" })},
		"an address that is the API server's by now":         {request: serving("win-a", "192.0.2.12"), again: retryAsk, asked: 1, change: renews(func(r *record.Record) { r.Served = "192.0.2.12" })},
		"another Node of the name":                           {request: serving("win-a", "192.0.2.5"), again: retryAsk, asked: 1, change: renews(func(r *record.Record) { r.NodeUID = "uid-old" })},
		"no key is pinned":                                   {request: serving("win-a", "192.0.2.5"), again: retryAsk, asked: 1, change: renews(func(r *record.Record) { r.HostKey = "" })},
		"its Node is being adopted":                          {request: serving("win-a", "192.0.2.5"), again: retryAsk, asked: 1, change: renews(func(r *record.Record) { r.Adopting = true })},
		"a first certificate, although the Node is recorded": {request: first("win-a"), event: "a Node of this name exists", again: configure.AgainLater, change: renews(nil)},

		"cloud-node-manager, which the policy binds": {
			request: cloud("win-a"), approved: true, change: func(_ *testing.T, c *cluster) { azure(c, policy, binding) },
		},
		"cloud-node-manager without the policy": {
			request: cloud("win-a"), failure: "no certificate for cloud-node-manager before it is bound to its own Node",
			change: func(_ *testing.T, c *cluster) { azure(c, binding) },
		},
		"cloud-node-manager with a policy that nothing binds": {
			request: cloud("win-a"), failure: "no certificate for cloud-node-manager before it is bound to its own Node",
			change: func(_ *testing.T, c *cluster) { azure(c, policy) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			if tt.change != nil {
				tt.change(t, c)
			}
			a := c.approver(t, tt.request)
			result, events, err := a.reconcile(t)
			if failed := err != nil; failed != (tt.failure != "") || failed && !strings.Contains(err.Error(), tt.failure) {
				t.Fatalf("error %v, want %q", err, tt.failure)
			}
			if got := a.approved(t); got != tt.approved || result.RequeueAfter != tt.again {
				t.Errorf("approved %t, again after %s; want %t, %s", got, result.RequeueAfter, tt.approved, tt.again)
			}
			if !strings.Contains(strings.Join(events, "\n"), tt.event) || (len(events) > 0) != (tt.event != "") {
				t.Errorf("events %q, want one with %q", events, tt.event)
			}
			if len(c.network.asked) != tt.asked {
				t.Errorf("the hosts were asked at %q, want %d commands", c.network.asked, tt.asked)
			}
		})
	}
}

// TestANameIsReservedBeforeItsCertificateIsApproved: no other host becomes the Node afterwards, and the host gets no second name.
func TestANameIsReservedBeforeItsCertificateIsApproved(t *testing.T) {
	c := newCluster(t)
	a := c.approver(t, first("win-a"))
	if _, _, err := a.reconcile(t); err != nil || !a.approved(t) {
		t.Fatalf("approved %t, %v", a.approved(t), err)
	}
	r, _, err := a.Records.GetRecord(t.Context(), record.OfEntry("192.0.2.5"))
	if diff := cmp.Diff(record.Record{Schema: record.Schema, Entry: "192.0.2.5", Node: "win-a"}, r); diff != "" || err != nil {
		t.Errorf("record (-want +got):\n%s%v", diff, err)
	}

	// Another host took the name after the inputs were read.
	c = newCluster(t)
	a = c.approver(t, first("win-a"))
	must(t, a.Records.UpdateRecord(t.Context(), record.OfEntry("192.0.2.6"), func(r record.Record) (record.Record, error) {
		r.Node = "win-a"
		return r, nil
	}))
	if _, _, err := a.reconcile(t); a.approved(t) || err == nil || !strings.Contains(err.Error(), "approving a certificate of node win-a for 192.0.2.5: the name is that of") {
		t.Errorf("approved %t, %v", a.approved(t), err)
	}

	// A serving certificate gives no name.
	a = newCluster(t).approver(t, serving("win-a", "win-a"))
	if _, _, err := a.reconcile(t); err != nil || !a.approved(t) {
		t.Fatalf("approved %t, %v", a.approved(t), err)
	}
	if _, known, err := a.Records.GetRecord(t.Context(), record.OfEntry("192.0.2.5")); known || err != nil {
		t.Errorf("the host is recorded as a Node: %v", err)
	}
}

// TestARefusedRequestIsLookedAtLessAndLessOften: each look may cost a question to the host. The time counts from the first look of this process at
// this request.
func TestARefusedRequestIsLookedAtLessAndLessOften(t *testing.T) {
	c := newCluster(t)
	c.network.hosts["192.0.2.5"] = host{factsOf("WIN-A"), otherKey.public(t)}
	a := c.approver(t, first("win-a"))
	var got []time.Duration
	look := func(now time.Duration) {
		t.Helper()
		a.now = now
		result, _, err := a.reconcile(t)
		must(t, err)
		got = append(got, result.RequeueAfter)
	}
	for _, now := range []time.Duration{time.Hour, time.Hour + 30*time.Second, time.Hour + 10*time.Minute, 1000 * time.Hour} {
		look(now)
	}
	// It is gone, and another one comes with the name.
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "csr-1"}}
	must(t, a.Client.Delete(t.Context(), csr))
	look(1001 * time.Hour)
	must(t, a.Client.Create(t.Context(), first("win-a").object(t)))
	look(1002 * time.Hour)
	if diff := cmp.Diff([]time.Duration{time.Minute, time.Minute, 10 * time.Minute, time.Hour, 0, time.Minute}, got); diff != "" {
		t.Errorf("again after (-want +got):\n%s", diff)
	}
	// One for a name that no host has, while the name of a host is not known.
	c = newCluster(t)
	c.inputs.All = append(c.inputs.All, render.Node{Backing: render.BackingInstance, Address: "192.0.2.6"})
	a, got = c.approver(t, first("win-x")), nil
	for _, now := range []time.Duration{time.Hour, time.Hour + 10*time.Minute} {
		look(now)
	}
	if diff := cmp.Diff([]time.Duration{15 * time.Second, 10 * time.Minute}, got); diff != "" {
		t.Errorf("a made-up name: again after (-want +got):\n%s", diff)
	}
}

// intercept has requests of the approver go through these functions first.
func (a *approver) intercept(f interceptor.Funcs) {
	live := interceptor.NewClient(a.Live.(client.WithWatch), f) //nolint:forcetypeassert // a fake client
	a.Live, a.Client = live, live
}

// TestNodesAreListedInParts: the one that has the name of the host is in the last part, and none is larger than it has to be.
func TestNodesAreListedInParts(t *testing.T) {
	a := newCluster(t).approver(t, first("win-a"))
	parts := map[string]corev1.NodeList{
		"":       {ListMeta: metav1.ListMeta{Continue: "second"}, Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "linux-a"}}}},
		"second": {Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "win-a"}}}},
	}
	listed := 0
	a.intercept(interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		o := (&client.ListOptions{}).ApplyOptions(options)
		if o.Limit == 0 || o.Limit > nodesAtATime {
			t.Errorf("%d Nodes at a time", o.Limit)
		}
		part := parts[o.Continue]
		part.DeepCopyInto(list.(*corev1.NodeList)) //nolint:forcetypeassert // nothing else is listed
		listed++
		return nil
	}})
	_, notes, err := a.reconcile(t)
	must(t, err)
	if listed != len(parts) || a.approved(t) || !strings.Contains(strings.Join(notes, " "), "a Node of this name exists") {
		t.Errorf("%d lists, approved %t: %q", listed, a.approved(t), notes)
	}
}

// TestNodesAreListedOnceForAllRequests that wait: whoever has the identity of a node makes requests all the time, and each would have all Nodes listed.
func TestNodesAreListedOnceForAllRequests(t *testing.T) {
	a := newCluster(t).approver(t, first("win-a"))
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		var lists atomic.Int32
		a.intercept(interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			lists.Add(1)
			<-goOn
			list.(*corev1.NodeList).Items = []corev1.Node{{ //nolint:forcetypeassert // nothing else is listed
				ObjectMeta: metav1.ObjectMeta{Name: "linux-a"}, Status: corev1.NodeStatus{Addresses: make([]corev1.NodeAddress, 2*mostAddresses)},
			}}
			return nil
		}})
		known := make([]certificates.Known, 10)
		var judged sync.WaitGroup
		for i := range known {
			judged.Go(func() {
				if err := a.addClusterFacts(t.Context(), &desired.Hosts{}, certificates.Host{}, &known[i]); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		close(goOn)
		judged.Wait()
		if n := lists.Load(); n != 2 { // one that had begun, and one for all who came later
			t.Errorf("%d lists", n)
		}
		for _, k := range known {
			if len(k.Nodes) != 1 || len(k.Others) != mostAddresses {
				t.Errorf("%q, %d addresses", k.Nodes, len(k.Others))
			}
		}
	})
}

// TestWhatIsJudgedIsWhatIsApproved: a request that changed since it was read is judged again, and nothing else that fails approves one.
func TestWhatIsJudgedIsWhatIsApproved(t *testing.T) {
	broken := errors.New("no answer")
	isBroken := func(err error) bool { return errors.Is(err, broken) }
	for name, tt := range map[string]struct {
		change func(*approver)
		is     func(error) bool
		text   string
	}{
		"the request has changed": {
			is: apierrors.IsConflict,
			change: func(a *approver) {
				a.intercept(interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, _ ...client.SubResourceUpdateOption) error {
					now := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: o.GetName()}}
					label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"true"}}}`))
					if err := c.Patch(ctx, now, label); err != nil {
						return err
					}
					return c.SubResource(sub).Update(ctx, o)
				}})
			},
		},
		"the operator may not approve": {
			is: apierrors.IsForbidden, text: "approving csr-1: ",
			change: func(a *approver) {
				a.intercept(interceptor.Funcs{SubResourceUpdate: func(_ context.Context, _ client.Client, sub string, _ client.Object, _ ...client.SubResourceUpdateOption) error {
					if sub != "approval" {
						return errors.New("it is approved by " + sub)
					}
					return apierrors.NewForbidden(certificatesv1.Resource("certificatesigningrequests"), "csr-1", broken)
				}})
			},
		},
		"the inputs cannot be read": {
			is: isBroken, text: "reading the inputs: ",
			change: func(a *approver) { a.Inputs = func(context.Context) (*desired.Hosts, error) { return nil, broken } },
		},
		"the Nodes cannot be listed": {
			is: isBroken, text: "listing Nodes: ",
			change: func(a *approver) {
				a.intercept(interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken }})
			},
		},
		"the Node cannot be read": {
			is: isBroken,
			change: func(a *approver) {
				a.intercept(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if _, ok := o.(*corev1.Node); ok {
						return broken
					}
					return c.Get(ctx, key, o, opts...)
				}})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newCluster(t).approver(t, first("win-a"))
			tt.change(a)
			if _, events, err := a.reconcile(t); !tt.is(err) || !strings.HasPrefix(err.Error(), tt.text) || len(events) > 0 || a.approved(t) {
				t.Errorf("approved %t, events %q, error %v", a.approved(t), events, err)
			}
		})
	}
}

// TestOneHostHasFewPlaces: whoever has the identity of one node may make many requests, each of which is a question to its host.
func TestOneHostHasFewPlaces(t *testing.T) {
	c := newCluster(t)
	a := c.approver(t, first("win-a"))
	id := certificates.Host{Address: "192.0.2.5"}.ID()
	var free func()
	for i := range hostPlaces {
		var ok bool
		if free, ok = a.takePlace(id); !ok {
			t.Fatalf("no place %d", i)
		}
	}
	if _, ok := a.takePlace("192.0.2.6"); !ok {
		t.Error("another host has no place")
	}
	for _, tt := range []struct{ age, again time.Duration }{{0, retryAsk}, {20 * time.Second, 20 * time.Second}, {time.Hour, time.Minute}} {
		a.now = time.Hour + tt.age
		if result, _, err := a.reconcile(t); err != nil || result.RequeueAfter != tt.again || a.approved(t) || len(c.network.asked) > 0 {
			t.Errorf("after %s: again after %s, asked %q, %v", tt.age, result.RequeueAfter, c.network.asked, err)
		}
	}
	free()
	if _, _, err := a.reconcile(t); err != nil || !a.approved(t) {
		t.Errorf("approved %t, %v", a.approved(t), err)
	}
	if _, ok := a.takePlace(id); !ok {
		t.Error("its place is not given back")
	}
}
