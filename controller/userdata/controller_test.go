package userdata

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/controller/base/policies"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/keys"
	"wmco/deploy/admission"
	"wmco/internal/test/testenv/manifests"
	"wmco/render/machines"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// operator keeps the user data of a cluster in memory.
type operator struct {
	*UserData
	client.WithWatch
	t        *testing.T
	recorder *events.FakeRecorder
	// lastConditions are those of the last call.
	lastConditions []metav1.Condition
}

const machineAPI, clusterAPI = "openshift-machine-api", machines.ClusterAPINamespace

// newOperator is that of a vSphere cluster with the private key, the policy about the operator's Secrets, and the namespaces.
func newOperator(t *testing.T, change ...func(*configv1.Infrastructure)) *operator {
	t.Helper()
	with := runtime.NewScheme()
	must(t, scheme.AddToScheme(with))
	must(t, configv1.Install(with))
	infrastructure := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	infrastructure.Status.PlatformStatus = &configv1.PlatformStatus{Type: configv1.VSpherePlatformType}
	for _, c := range change {
		c(infrastructure)
	}
	policy, binding := admission.OperatorSecrets(gather.OperatorNamespace)
	o := &operator{t: t, recorder: events.NewFakeRecorder(100)}
	o.WithWatch = fake.NewClientBuilder().WithScheme(with).WithObjects(infrastructure, policy, binding, namespace(machineAPI), namespace(clusterAPI)).Build()
	must(t, o.Create(t.Context(), privateKey(t)))
	o.use(o.WithWatch)
	return o
}

// use has the operator read and write with a client.
func (o *operator) use(c client.WithWatch) {
	o.UserData = &UserData{
		Reader: c, Live: c, Client: c, Policies: policies.Policies{Live: c, Client: c, Namespace: gather.OperatorNamespace},
		Say:   func(_ context.Context, list []metav1.Condition) error { o.lastConditions = list; return nil },
		Login: &hosts.Login{Live: c, Client: c, Namespace: gather.OperatorNamespace}, Events: o.recorder, Log: logr.Discard(),
	}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func privateKey(t *testing.T) *corev1.Secret {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	must(t, err)
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: keys.SecretName}, Data: map[string][]byte{keys.SecretKey: pem.EncodeToMemory(block)}}
}

// userData is the Secret of a namespace.
func userData(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "windows-user-data"}}
}

// secret returns the Secret of a namespace as it is, nil where there is none.
func (o *operator) secret(namespace string) *corev1.Secret {
	o.t.Helper()
	s := userData(namespace)
	err := o.WithWatch.Get(o.t.Context(), client.ObjectKeyFromObject(s), s)
	must(o.t, client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return s
}

// reconcile returns the condition and the events.
func (o *operator) reconcile() (metav1.Condition, []string, error) {
	o.t.Helper()
	o.lastConditions = nil
	result, err := o.Reconcile(o.t.Context(), reconcile.Request{})
	if err == nil && (result.RequeueAfter == 0 || result.RequeueAfter > 30*time.Second) {
		o.t.Errorf("the Secrets are compared again after %s", result.RequeueAfter)
	}
	var list []string
	for len(o.recorder.Events) > 0 {
		list = append(list, <-o.recorder.Events)
	}
	if len(o.lastConditions) != 1 || o.lastConditions[0].Type != UserDataWritten {
		return metav1.Condition{}, list, err
	}
	return o.lastConditions[0], list, err
}

// as has the condition be this one.
func (o *operator) as(what string, status metav1.ConditionStatus, parts ...string) {
	o.t.Helper()
	c, events, err := o.reconcile()
	text := c.Reason + ": " + c.Message
	if err != nil || c.Status != status || slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) }) {
		o.t.Errorf("%s: %s %s, %v; want %s with %q", what, c.Status, text, err, status, parts)
	}
	if len(events) > 0 != (status == metav1.ConditionFalse) {
		o.t.Errorf("%s: events %q", what, events)
	}
}

// TestUserDataIsThatOfTheKey: both namespaces have it, another key replaces it, and what another program wrote into it goes.
func TestUserDataIsThatOfTheKey(t *testing.T) {
	o := newOperator(t)
	foreign := userData(clusterAPI)
	foreign.Labels, foreign.Data = map[string]string{"made-by": "another"}, map[string][]byte{"userData": []byte("x"), "more": []byte("y")}
	must(t, o.Create(t.Context(), foreign))
	o.as("at the start", metav1.ConditionTrue)
	here, there := o.secret(machineAPI), o.secret(clusterAPI)
	key, _, err := o.Login.PrivateKey(t.Context())
	must(t, err)
	if len(here.Data) != 1 || !strings.Contains(string(here.Data["userData"]), strings.TrimSpace(key.PublicKey())) {
		t.Errorf("the user data is not that of the key: %d values", len(here.Data))
	}
	if diff := cmp.Diff(here.Data, there.Data); diff != "" || there.Labels["made-by"] != "another" {
		t.Errorf("labels %v; user data of both namespaces:\n%s", there.Labels, diff)
	}
	o.as("once more", metav1.ConditionTrue)
	if again := o.secret(machineAPI); again.ResourceVersion != here.ResourceVersion {
		t.Error("what is as it must be was written again")
	}
	must(t, o.Delete(t.Context(), privateKey(t)))
	must(t, o.Create(t.Context(), privateKey(t)))
	o.as("with another key", metav1.ConditionTrue)
	if now := o.secret(machineAPI); cmp.Equal(now.Data, here.Data) {
		t.Error("the user data is that of the earlier key")
	}
}

// TestWhereUserDataIs: in namespaces that exist and stay, of platforms whose Machines the cluster makes.
func TestWhereUserDataIs(t *testing.T) {
	for name, tt := range map[string]struct {
		platform *configv1.PlatformStatus
		change   func(*operator)
		want     []string
	}{
		"vSphere":    {&configv1.PlatformStatus{Type: configv1.VSpherePlatformType}, func(*operator) {}, []string{machineAPI, clusterAPI}},
		"no cloud":   {&configv1.PlatformStatus{Type: configv1.NonePlatformType}, func(*operator) {}, nil},
		"no status":  {nil, func(*operator) {}, nil},
		"no machine": {&configv1.PlatformStatus{Type: configv1.AWSPlatformType}, func(o *operator) { must(t, o.Delete(t.Context(), namespace(machineAPI))) }, []string{clusterAPI}},
		"a namespace that is being deleted": {&configv1.PlatformStatus{Type: configv1.AWSPlatformType}, func(o *operator) {
			ns := namespace(clusterAPI)
			ns.Finalizers = []string{"example.com/f"}
			must(t, o.Update(t.Context(), ns))
			must(t, o.Delete(t.Context(), ns))
		}, []string{machineAPI}},
	} {
		o := newOperator(t, func(i *configv1.Infrastructure) { i.Status.PlatformStatus = tt.platform })
		tt.change(o)
		o.as(name, metav1.ConditionTrue)
		var got []string
		for _, ns := range []string{machineAPI, clusterAPI} {
			if o.secret(ns) != nil {
				got = append(got, ns)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// shippedRole is the Role of deploy/cluster-api about user data.
func shippedRole(t *testing.T) rbacv1.Role {
	t.Helper()
	list, err := manifests.Read(filepath.Join("..", "..", "deploy", "cluster-api", "user-data.yaml"))
	must(t, err)
	var role rbacv1.Role
	i := slices.IndexFunc(list, func(m manifests.Manifest) bool { return m.GetKind() == "Role" })
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(list[i].Object, &role))
	return role
}

// permitted is a client whose requests about the user data of the Cluster API need these verbs.
func (o *operator) permitted(verbs ...string) client.WithWatch {
	check := func(namespace string, wanted ...string) error {
		if namespace != clusterAPI || !slices.ContainsFunc(wanted, func(verb string) bool { return !slices.Contains(verbs, verb) }) {
			return nil
		}
		return apierrors.NewForbidden(corev1.Resource("secrets"), "windows-user-data", errors.New("no role"))
	}
	return interceptor.NewClient(o.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if err := check(key.Namespace, "get"); err != nil {
				return err
			}
			return c.Get(ctx, key, object, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if u, ok := object.(interface{ GetNamespace() string }); ok {
				if err := check(u.GetNamespace(), "create", "patch"); err != nil {
					return err
				}
			}
			return c.Apply(ctx, object, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := check(object.GetNamespace(), "patch"); err != nil {
				return err
			}
			return c.Patch(ctx, object, patch, opts...)
		},
	})
}

// TestUserDataThatMayNotBeWritten: the Role for the Cluster API is installed by those who have it. Without it the other namespace gets user data all
// the same, and the condition has the commands that give the right.
func TestUserDataThatMayNotBeWritten(t *testing.T) {
	o := newOperator(t)
	const command = "fix: oc -n openshift-cluster-api create role windows-machine-config-operator --verb=get,create,patch --resource=secrets --resource-name=windows-user-data && " +
		"oc -n openshift-cluster-api create rolebinding windows-machine-config-operator --role=windows-machine-config-operator " +
		"--serviceaccount=openshift-windows-machine-config-operator:windows-machine-config-operator"
	for _, verbs := range [][]string{nil, {"get"}} {
		o.use(o.permitted(verbs...))
		o.as("without the right", metav1.ConditionFalse, "NotPermitted", mayLack+"the operator may not write Secret windows-user-data in openshift-cluster-api; ", command)
		if o.secret(machineAPI) == nil || o.secret(clusterAPI) != nil {
			t.Errorf("with %q: user data in openshift-machine-api %t, in openshift-cluster-api %t", verbs, o.secret(machineAPI) != nil, o.secret(clusterAPI) != nil)
		}
	}
	role := shippedRole(t)
	gives := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"windows-user-data"}, Verbs: []string{"get", "create", "patch"}}}
	if diff := cmp.Diff(gives, role.Rules); diff != "" || role.Namespace != clusterAPI {
		t.Errorf("the Role in %s is not what the command gives (-command +shipped):\n%s", role.Namespace, diff)
	}
	o.use(o.permitted(role.Rules[0].Verbs...))
	o.as("with the right", metav1.ConditionTrue)
	changed := o.secret(clusterAPI)
	want := changed.Data
	changed.Data = map[string][]byte{"userData": []byte("another")}
	must(t, o.Update(t.Context(), changed))
	o.as("with the right, and another text", metav1.ConditionTrue)
	if diff := cmp.Diff(want, o.secret(clusterAPI).Data); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNoUserDataWithoutThePolicy: what binds the operator's account is missing, and the operator may not apply it.
func TestNoUserDataWithoutThePolicy(t *testing.T) {
	o := newOperator(t)
	policy, binding := admission.OperatorSecrets(gather.OperatorNamespace)
	for kind, missing := range map[string]client.Object{"ValidatingAdmissionPolicy": policy, "ValidatingAdmissionPolicyBinding": binding} {
		must(t, o.Delete(t.Context(), missing.DeepCopyObject().(client.Object))) //nolint:forcetypeassert // it is one
		o.use(interceptor.NewClient(o.WithWatch, interceptor.Funcs{Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return apierrors.NewForbidden(corev1.Resource("policies"), missing.GetName(), errors.New("no role"))
		}}))
		o.as("without "+kind, metav1.ConditionFalse, policies.ReasonPolicyNotApplied, mayLack+"applying "+kind+" ", "fix: see the condition "+policies.SecretWritesBound)
		for _, ns := range []string{machineAPI, clusterAPI} {
			if o.secret(ns) != nil {
				t.Errorf("without %s: user data is written in %s", kind, ns)
			}
		}
		must(t, o.Create(t.Context(), missing))
	}
	// Where the operator may apply it, it does so first.
	must(t, o.Delete(t.Context(), binding.DeepCopy()))
	o.use(o.WithWatch)
	o.as("with the right to apply it", metav1.ConditionTrue)
	must(t, o.WithWatch.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
}

// TestAKeyThatCannotBeUsedChangesNothing: an Event has the problem.
func TestAKeyThatCannotBeUsedChangesNothing(t *testing.T) {
	o := newOperator(t)
	o.as("with a key", metav1.ConditionTrue)
	before := o.secret(machineAPI)
	for what, change := range map[string]func(){
		"no key": func() { must(t, o.Delete(t.Context(), privateKey(t))) },
		"text": func() {
			s := privateKey(t)
			s.Data = map[string][]byte{keys.SecretKey: []byte("hello")}
			must(t, client.IgnoreNotFound(o.Delete(t.Context(), s.DeepCopy())))
			must(t, o.Create(t.Context(), s))
		},
	} {
		change()
		c, events, err := o.reconcile()
		if err != nil || c.Type != "" || len(events) != 1 || !strings.HasPrefix(events[0], "Warning ") || !strings.Contains(events[0], "; fix: ") {
			t.Errorf("%s: %+v, %q, %v", what, c, events, err)
		}
		if diff := cmp.Diff(before, o.secret(machineAPI)); diff != "" {
			t.Errorf("%s: the user data has changed:\n%s", what, diff)
		}
	}
}

// TestWhatFailsIsTriedAgain: each Secret is tried, whatever becomes of the other, and an error is reported.
func TestWhatFailsIsTriedAgain(t *testing.T) {
	broken := errors.New("no answer")
	failing := func(is func(key client.ObjectKey, o client.Object) bool) func(o *operator) {
		return func(o *operator) {
			o.use(interceptor.NewClient(o.WithWatch, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
				if is(key, object) {
					return broken
				}
				return c.Get(ctx, key, object, opts...)
			}}))
		}
	}
	for name, tt := range map[string]struct {
		fails   func(*operator)
		text    string
		written bool
	}{
		"the private key": {failing(func(k client.ObjectKey, _ client.Object) bool { return k.Name == keys.SecretName }), "reading Secret cloud-private-key: ", false},
		"the platform":    {failing(func(_ client.ObjectKey, o client.Object) bool { _, ok := o.(*configv1.Infrastructure); return ok }), "reading Infrastructure cluster: ", false},
		"a namespace":     {failing(func(_ client.ObjectKey, o client.Object) bool { _, ok := o.(*corev1.Namespace); return ok }), "reading Namespace openshift-machine-api: ", false},
		"a Secret":        {failing(func(k client.ObjectKey, _ client.Object) bool { return k.Namespace == machineAPI }), "writing Secret openshift-machine-api/windows-user-data: ", true},
	} {
		o := newOperator(t)
		tt.fails(o)
		c, _, err := o.reconcile()
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), tt.text) || (o.secret(clusterAPI) != nil) != tt.written {
			t.Errorf("%s: user data of the other namespace %t, %v", name, o.secret(clusterAPI) != nil, err)
		}
		if tt.written && (c.Reason != reasonNotWritten || !strings.HasPrefix(c.Message, mayLack+tt.text)) {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// TestASecretThatChangesWhileItIsReplacedStays: another program wrote it after it was read.
func TestASecretThatChangesWhileItIsReplacedStays(t *testing.T) {
	o := newOperator(t)
	must(t, o.Create(t.Context(), userData(machineAPI)))
	o.use(interceptor.NewClient(o.WithWatch, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
		now := o.secret(machineAPI)
		now.Data = map[string][]byte{"userData": []byte("newer")}
		if err := c.Update(ctx, now); err != nil {
			return err
		}
		return c.Patch(ctx, object, patch, opts...)
	}}))
	if _, _, err := o.reconcile(); !apierrors.IsConflict(err) || string(o.secret(machineAPI).Data["userData"]) != "newer" {
		t.Errorf("%v; it has %d bytes", err, len(o.secret(machineAPI).Data["userData"]))
	}
}
