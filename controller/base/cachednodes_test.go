package base

import (
	"context"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"wmco/bundle/published"
	"wmco/controller/gather/objects"
	"wmco/internal/test/testenv"
)

var server testenv.Environment

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// startedCache returns the cache of the operator, which ends with the test.
func startedCache(t *testing.T, wants ...objects.Want) cache.Cache {
	t.Helper()
	o, config := CacheOptions(wants), rest.CopyConfig(server.Config(t))
	var err error
	if o.HTTPClient, err = rest.HTTPClientFor(config); err != nil {
		t.Fatal(err)
	}
	if o.Mapper, err = apiutil.NewDynamicRESTMapper(config, o.HTTPClient); err != nil {
		t.Fatal(err)
	}
	c, err := NewCache(wants, nil)(config, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if !c.WaitForCacheSync(ctx) {
		t.Fatal("the cache does not start")
	}
	return c
}

// TestTheCacheHasNodesAsTheAPIServerHasThem: the wanted Nodes, as JSON has them, but for fields that are not read.
func TestTheCacheHasNodesAsTheAPIServerHasThem(t *testing.T) {
	c := server.Client(t)
	now := metav1.Now()
	for name, system := range map[string]string{"win-source-a": "windows", "win-source-b": "windows", "linux-source": "linux"} {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: system}, Annotations: map[string]string{"a": "b"}, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "x", UID: "y", Controller: new(true)}}},
			Spec:       corev1.NodeSpec{Unschedulable: true, ProviderID: "p", PodCIDR: "10.0.0.0/24", PodCIDRs: []string{"10.0.0.0/24"}, Taints: []corev1.Taint{{Key: "os", Value: "Windows", Effect: corev1.TaintEffectNoSchedule, TimeAdded: &now}}},
		}
		if err := c.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := client.IgnoreNotFound(c.Delete(context.Background(), node)); err != nil {
				t.Error(err)
			}
		})
		if name == "win-source-b" {
			continue // without a status
		}
		node.Status = corev1.NodeStatus{
			Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3500m"), corev1.ResourceMemory: resource.MustParse("14679596Ki")},
			Phase:    corev1.NodeRunning, Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, LastHeartbeatTime: now, LastTransitionTime: now, Reason: "r", Message: "m"},
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: now, Reason: "r", Message: "m"},
				{Type: published.Condition, Status: corev1.ConditionFalse, LastHeartbeatTime: now, LastTransitionTime: now, Reason: "s", Message: "n"},
			},
			NodeInfo:        corev1.NodeSystemInfo{KubeletVersion: "v1.36.2", OSImage: "Windows"},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}},
			Images:          []corev1.ContainerImage{{Names: []string{"i"}, SizeBytes: 1}}, VolumesInUse: []corev1.UniqueVolumeName{"v"},
			VolumesAttached: []corev1.AttachedVolume{{Name: "v", DevicePath: "p"}},
		}
		if err := c.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	cached := startedCache(t, objects.Want{Version: "v1", Kind: "Node", Labels: map[string]string{corev1.LabelOSStable: "windows"}})
	var list corev1.NodeList
	if err := cached.List(t.Context(), &list); err != nil || len(list.Items) != 2 {
		t.Fatalf("%d Nodes, %v", len(list.Items), err)
	}
	for i := range list.Items {
		sameAsJSON(t, c, &list.Items[i])
	}
	informer, err := cached.GetInformer(t.Context(), &corev1.Node{})
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan *corev1.Node, 10)
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(_, now any) { changed <- now.(*corev1.Node) }}); err != nil { //nolint:forcetypeassert // nothing else is cached
		t.Fatal(err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"a":"c"}}}`))
	for _, name := range []string{"linux-source", "win-source-a"} {
		if err := c.Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, patch); err != nil {
			t.Fatal(err)
		}
	}
	node := <-changed
	if node.Name != "win-source-a" || node.Annotations["a"] != "c" {
		t.Fatalf("%+v", node)
	}
	sameAsJSON(t, c, node)
}

// sameAsJSON compares a Node, and what it is for those who read all kinds alike, with the one that the API server sends as JSON.
func sameAsJSON(t *testing.T, c client.Client, got *corev1.Node) {
	t.Helper()
	want := NewObject(NodeKind())
	if err := c.Get(t.Context(), client.ObjectKey{Name: got.Name}, want); err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(want.Object, "metadata", "managedFields")
	var all corev1.Node
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(want.Object, &all); err != nil {
		t.Fatal(err)
	}
	kept := corev1.NodeStatus{Addresses: all.Status.Addresses, NodeInfo: corev1.NodeSystemInfo{KubeletVersion: all.Status.NodeInfo.KubeletVersion}}
	if len(all.Status.Conditions) > 0 {
		kept.Conditions = all.Status.Conditions[1:] // without MemoryPressure
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&kept)
	if err != nil {
		t.Fatal(err)
	}
	want.Object["status"] = status
	if got.Kind != "Node" || got.APIVersion != "v1" {
		t.Errorf("%s is of kind %q of %q", got.Name, got.Kind, got.APIVersion)
	}
	u, err := unstructuredNode(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Object, u.Object); diff != "" {
		t.Errorf("%s (-json +protobuf):\n%s", got.Name, diff)
	}
}
