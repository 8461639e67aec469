package node

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"wmco/applier/remote"
	"wmco/controller/configure"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/inputs/desired"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/drain"
	"wmco/controller/windowsnode/record"
)

// unreachable calls a function for each host that is to be reached, and reaches none.
type unreachable func()

func (u unreachable) Connect(context.Context, remote.Target) error {
	u()
	return errors.New("away")
}

func (u unreachable) Run(ctx context.Context, t remote.Target, _ remote.Command) error {
	return u.Connect(ctx, t)
}

func (u unreachable) Transfer(ctx context.Context, t remote.Target, _ func(remote.Files) error) error {
	return u.Connect(ctx, t)
}

func (unreachable) Close() error { return nil }

// TestANodeHasNoVersionBeforeItsHostIsCleanedUp: a host whose entry comes back in between joins again.
func TestANodeHasNoVersionBeforeItsHostIsCleanedUp(t *testing.T) {
	r := record.Record{Entry: "192.0.2.1", Address: "192.0.2.1", Account: "Administrator", Node: "win-a", NodeUID: "uid-a"}
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	// Its kubelet does not end a Pod.
	overdue := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "stays", DeletionTimestamp: new(metav1.NewTime(time.Now().Add(-2 * giveUpPods)))}}
	node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}, Spec: corev1.NodeSpec{Unschedulable: true}, ObjectMeta: metav1.ObjectMeta{
		Name: r.Node, UID: r.NodeUID, Annotations: map[string]string{configure.VersionAnnotation: "v1", RemoveAnnotation: configure.ValueTrue},
	}}
	c := fake.NewFakeClient(node, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: record.ConfigMapName(r.ID())}, Data: map[string]string{string(r.ID()): text}})
	read := func() *corev1.Node {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			t.Fatal(err)
		}
		return node
	}
	reached := 0
	away := unreachable(func() {
		reached++
		if version := read().Annotations[configure.VersionAnnotation]; version != "" {
			t.Errorf("its host is reached while the Node has version %q", version)
		}
	})
	program, err := remote.FileProgram("controller.go") // it is never sent
	if err != nil {
		t.Fatal(err)
	}
	rm := &remover{namespace: "n", drainer: drain.Drainer{Client: kubernetesfake.NewClientset(overdue)}, joiner: &configure.Joiner{
		Client: c, Unjoined: &configure.Unjoined{}, Login: &hosts.Login{Live: c, Records: &hosts.Records{Live: c, Namespace: "n"}},
		Hosts:  hosts.New(hosts.Options{Transports: hosts.Transports{Kept: away, Fresh: away}, Program: program}),
		Inputs: func(context.Context) (*desired.Hosts, error) { return &desired.Hosts{}, nil },
	}}
	for range 3 {
		if _, err := rm.continueRemoval(t.Context(), windowsnode.Decode(*read()), r); err != nil {
			t.Fatal(err)
		}
	}
	if reached == 0 {
		t.Error("its host is not reached: the test proves nothing")
	}
	if !windowsnode.HasTaint(read(), windowsnode.RemovingTaint) || node.Annotations[configure.JoiningAnnotation] != "" {
		t.Errorf("a node that was cordoned before has taints %v, annotations %v", node.Spec.Taints, node.Annotations)
	}
}

// TestWhichEntriesReplaceAnother: one whose name resolves to the address of the host, unless it is the entry of another node. A host may write the record of its
// own name in the DNS.
func TestWhichEntriesReplaceAnother(t *testing.T) {
	removed := record.Record{Entry: "192.0.2.1", Address: "192.0.2.1", Resolved: "192.0.2.1", Node: "win-a", NodeUID: "uid-a", HostKey: "a"}
	for name, tt := range map[string]struct {
		other record.Record
		want  bool
	}{
		"of a host that was not reached":                {record.Record{Entry: "b.example.com"}, true},
		"of the same host, which is known under it too": {record.Record{Entry: "b.example.com", HostKey: "a", Node: "win-a"}, true},
		"of another node":                               {record.Record{Entry: "b.example.com", HostKey: "b", Node: "win-b"}, false},
	} {
		inputs := &desired.Hosts{
			Instances: []gather.Instance{{Address: "b.example.com", Addresses: []string{"192.0.2.1", "192.0.2.2"}}}, Records: record.NewSet(removed, tt.other),
		}
		rm := &remover{joiner: &configure.Joiner{Inputs: func(context.Context) (*desired.Hosts, error) { return inputs, nil }, Elapsed: func() time.Duration { return 0 }}}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a", UID: "uid-a"}}
		got, unknown, err := rm.isReplaced(t.Context(), node, removed, map[string]string{"b.example.com": "username=u"})
		if got != tt.want || unknown != "" || err != nil {
			t.Errorf("%s: replaced %t, unknown %q, %v", name, got, unknown, err)
		}
	}
}
