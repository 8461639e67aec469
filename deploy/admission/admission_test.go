package admission

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/published"
	"wmco/internal/test/testenv"
)

var cluster testenv.Environment

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// create creates an object until the end of the test.
func create(t *testing.T, o client.Object) {
	t.Helper()
	admin := cluster.Client(t)
	if err := admin.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(admin.Delete(context.Background(), o)); err != nil {
			t.Error(err)
		}
	})
}

// as returns a client of a user.
func as(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()
	config := rest.CopyConfig(cluster.Config(t))
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	return testenv.NewClient(t, config)
}

func node(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/os": "windows", "node-role.kubernetes.io/worker": ""}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{
			{Key: taint, Value: "true", Effect: corev1.TaintEffectNoSchedule}, {Key: "os", Value: "Windows", Effect: corev1.TaintEffectNoSchedule},
		}},
	}
}

// start creates two Nodes and the policy, and waits until it is in effect.
func start(t *testing.T) (own client.Client) {
	t.Helper()
	cluster.Load(t, filepath.Join("..", "rbac", "cloud-node-manager.yaml"))
	create(t, node("win-a"))
	create(t, node("win-b"))
	policy, binding := CloudNodeManager()
	create(t, policy)
	create(t, binding)
	own = as(t, published.CloudNodeManagerUser("win-a"), published.CloudNodeManagerGroup)
	err := testenv.Eventually(t.Context(), "the policy to be in effect", func() bool {
		return refused(patch(t, own, "win-b", `{"metadata":{"labels":{"a":"b"}}}`, ""))
	})
	if err != nil {
		t.Fatal(err)
	}
	return own
}

func patch(t *testing.T, c client.Client, name, body, subresource string) error {
	t.Helper()
	p := client.RawPatch(types.MergePatchType, []byte(body))
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if subresource != "" {
		return c.SubResource(subresource).Patch(t.Context(), o, p)
	}
	return c.Patch(t.Context(), o, p)
}

// refused reports whether the policy refused a request, not RBAC.
func refused(err error) bool {
	return err != nil && strings.Contains(err.Error(), Name) && strings.Contains(err.Error(), "the cloud-node-manager of a Windows node")
}

const addresses = `{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.5"}]}}`

// untaint removes one taint, as cloud-node-manager does it: with an update of the Node that it read. The API server adds a taint
// to Nodes that are not ready.
func untaint(t *testing.T, c client.Client, name, key string) error {
	t.Helper()
	var n corev1.Node
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, &n); err != nil {
		t.Fatal(err)
	}
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
	return c.Update(t.Context(), &n)
}

func TestCloudNodeManagerDoesItsWork(t *testing.T) {
	own := start(t)
	for name, err := range map[string]error{
		"labels":                   patch(t, own, "win-a", `{"metadata":{"labels":{"topology.kubernetes.io/zone":"westus-1"}}}`, ""),
		"the provider's ID":        patch(t, own, "win-a", `{"spec":{"providerID":"azure:///x"}}`, ""),
		"the addresses":            patch(t, own, "win-a", addresses, "status"),
		"the taint":                untaint(t, own, "win-a", taint),
		"labels without the taint": patch(t, own, "win-a", `{"metadata":{"labels":{"node.kubernetes.io/instance-type":"D4s"}}}`, ""),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var n corev1.Node
	if err := own.Get(t.Context(), client.ObjectKey{Name: "win-a"}, &n); err != nil || hasTaint(n, taint) || !hasTaint(n, "os") || n.Spec.ProviderID == "" || len(n.Status.Addresses) != 1 {
		t.Errorf("%+v, %v", n.Spec, err)
	}
	// It updates the whole Node as well.
	n.Labels["failure-domain.beta.kubernetes.io/zone"] = "westus-1"
	if err := own.Update(t.Context(), &n); err != nil {
		t.Error(err)
	}
}

func hasTaint(n corev1.Node, key string) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

func TestCloudNodeManagerIsBoundToItsNode(t *testing.T) {
	own := start(t)
	stranger := as(t, "somebody", published.CloudNodeManagerGroup)
	// A request for the status changes labels as one for the Node does.
	for _, resource := range []string{"", "status"} {
		for name, metadata := range map[string]string{
			"an owner":    `"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"d7e6a0e5-0000-4000-8000-000000000000"}]`,
			"a finalizer": `"finalizers":["example.com/x"]`,
		} {
			if err := patch(t, own, "win-a", `{"metadata":{`+metadata+`}}`, resource); !refused(err) {
				t.Errorf("%s, by a request for the Node's %q: %v", name, resource, err)
			}
		}
		for name, labels := range map[string]string{
			"a role": `"node-role.kubernetes.io/master":""`, "a role removed": `"node-role.kubernetes.io/worker":null`, "a role changed": `"node-role.kubernetes.io/worker":"x"`,
			"a restricted label": `"example.com.node-restriction.kubernetes.io/x":"y"`, "a role of old": `"kubernetes.io/role":"master"`, "another name": `"kubernetes.io/hostname":"win-b"`,
			"a restricted domain alone": `"example.com.node-restriction.kubernetes.io":"y"`,
		} {
			if err := patch(t, own, "win-a", `{"metadata":{"labels":{`+labels+`}}}`, resource); !refused(err) {
				t.Errorf("%s, by a request for the Node's %q: %v", name, resource, err)
			}
		}
	}
	for name, err := range map[string]error{
		"another Node":                  patch(t, own, "win-b", `{"metadata":{"labels":{"topology.kubernetes.io/zone":"x"}}}`, ""),
		"another Node's taint":          untaint(t, own, "win-b", taint),
		"another Node's status":         patch(t, own, "win-b", addresses, "status"),
		"another taint removed":         untaint(t, own, "win-a", "os"),
		"all taints removed":            patch(t, own, "win-a", `{"spec":{"taints":null}}`, ""),
		"another taint changed":         patch(t, own, "win-a", `{"spec":{"taints":[{"key":"os","value":"Linux","effect":"NoSchedule"}]}}`, ""),
		"a taint added":                 patch(t, own, "win-a", `{"spec":{"taints":[{"key":"os","value":"Windows","effect":"NoSchedule"},{"key":"x","effect":"NoExecute"}]}}`, ""),
		"the group without such a user": patch(t, stranger, "win-a", `{"metadata":{"labels":{"a":"b"}}}`, ""),
	} {
		if !refused(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// RBAC does not let it create and delete, whatever the policy allows.
	if err := own.Create(t.Context(), node("win-c")); !apierrors.IsForbidden(err) {
		t.Errorf("creating a Node: %v", err)
	}
	if err := own.Delete(t.Context(), node("win-a")); !apierrors.IsForbidden(err) {
		t.Errorf("deleting a Node: %v", err)
	}
}

// TestThePolicyHoldsWhoeverGrantsMore lets the user do everything by RBAC.
func TestThePolicyHoldsWhoeverGrantsMore(t *testing.T) {
	start(t)
	powerful := as(t, published.CloudNodeManagerUser("win-a"), "system:masters")
	for name, err := range map[string]error{
		"creating a Node":             powerful.Create(t.Context(), node("win-c")),
		"deleting its own":            powerful.Delete(t.Context(), node("win-a")),
		"deleting another":            powerful.Delete(t.Context(), node("win-b")),
		"patching another, by prefix": patch(t, powerful, "win-b", `{"metadata":{"labels":{"a":"b"}}}`, ""),
	} {
		if !refused(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOthersAreNotConcerned(t *testing.T) {
	start(t)
	kubelet := testenv.NewClient(t, cluster.Node(t, "win-b"))
	if err := patch(t, kubelet, "win-b", `{"metadata":{"annotations":{"a":"b"}}}`, ""); err != nil {
		t.Errorf("the kubelet of a node: %v", err)
	}
	if err := patch(t, cluster.Client(t), "win-b", `{"spec":{"taints":null}}`, ""); err != nil {
		t.Errorf("an administrator: %v", err)
	}
}
