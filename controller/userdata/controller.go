// Package userdata has the controller that keeps the Secrets with the user data of new Machines.
package userdata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/base/conditions"
	"wmco/controller/base/named"
	"wmco/controller/base/policies"
	"wmco/controller/hosts"
	"wmco/controller/keys"
	"wmco/render/machines"
)

// UserData keeps the Secrets with the user data of new Machines. It replaces no Machine.
type UserData struct {
	// Reader is the cache of the inputs, unstructured; Live reads Secrets and Namespaces without one.
	Reader, Live client.Reader
	Client       client.Client
	Policies     policies.Policies
	// Say writes conditions where people look.
	Say    func(context.Context, []metav1.Condition) error
	Login  *hosts.Login
	Events events.EventRecorder
	Log    logr.Logger
}

// recheckKeys is how often the Secrets are compared although nothing was seen to change: those of other namespaces are
// not watched. A Machine that starts in between gets the present one, so a changed Secret is corrected within half a
// minute.
const recheckKeys = 20 * time.Second

// SetupWithManager watches the private key alone, in a cache of its own.
func (u *UserData) SetupWithManager(m base.Manager) error {
	c, err := m.NewController("userdata", u, base.ParallelHosts)
	if err != nil {
		return err
	}
	only := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", keys.SecretName),
		Namespaces: map[string]cache.Config{u.Login.Namespace: {}}}
	secrets, err := cache.New(m.GetConfig(), cache.Options{
		Scheme: m.GetScheme(), Mapper: m.GetRESTMapper(), HTTPClient: m.GetHTTPClient(), NewInformer: base.NewInformer,
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: only},
	})
	if err != nil {
		return err
	}
	if err := m.Add(secrets); err != nil {
		return err
	}
	once := handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, *corev1.Secret) []reconcile.Request {
		return base.RequestsFor([]string{"all"})
	})
	if err := c.Watch(source.Kind(secrets, &corev1.Secret{}, once)); err != nil {
		return err
	}
	// At the start, also without the Secret.
	return c.Watch(base.AtStart())
}

// Reconcile writes the Secrets that differ. A key that cannot be used is told, and changes none.
func (u *UserData) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	key, findings, err := u.Login.PrivateKey(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if findings.Refused() {
		f := findings.Sorted()[0]
		u.Events.Eventf(u.eventObject(), nil, corev1.EventTypeWarning, f.Reason, actionJoin, "%s; fix: %s",
			f.Message, f.Fix)
		return reconcile.Result{RequeueAfter: recheckKeys}, nil
	}
	platform, err := u.clusterPlatform(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	namespaces, err := u.secretNamespaces(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	wanted, err := keys.UserDataSecrets(platform, key, namespaces)
	if err != nil {
		return reconcile.Result{}, err
	}
	condition, err := u.writeSecrets(ctx, wanted)
	if condition.Status != metav1.ConditionTrue {
		u.Events.Eventf(u.eventObject(), nil, corev1.EventTypeWarning, condition.Reason, actionJoin, "%s: %s",
			condition.Type, condition.Message)
	}
	return reconcile.Result{RequeueAfter: recheckKeys}, errors.Join(err, u.Say(ctx, []metav1.Condition{condition}))
}

// UserDataWritten is the type of the condition that new Machines get user data of the operator's key.
const UserDataWritten = "UserDataWritten"

// Reasons of UserDataWritten while it is false.
const (
	reasonNotPermitted = "NotPermitted"
	reasonNotWritten   = "NotWritten"
)

// actionJoin is the action of events about the key, as of those about hosts that join.
const actionJoin = "Join"

// mayLack begins its message.
const mayLack = "new Machines may get no user data, or that of an earlier key: "

// eventObject is the object of events.
func (u *UserData) eventObject() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: u.Login.Namespace,
		Name: keys.SecretName}
}

// writeSecrets writes the Secrets that differ, each also where another one cannot be written, and reports how that ended.
// It writes none while nothing binds what else could be done with that right. An error is one that another try may not
// have.
func (u *UserData) writeSecrets(ctx context.Context, wanted []corev1.Secret) (metav1.Condition, error) {
	c := conditions.AsExpected(UserDataWritten)
	if len(wanted) == 0 {
		return c, nil
	}
	if err := u.Policies.BindOperator(ctx); err != nil {
		c.Status, c.Reason = metav1.ConditionFalse, policies.ReasonPolicyNotApplied
		c.Message = published.Shorten(fmt.Sprintf("%s%v; fix: see the condition %s", mayLack, err,
			policies.SecretWritesBound))
		return c, nil
	}
	var failed error
	var denied, fixes []string
	for _, w := range wanted {
		switch err := u.writeSecret(ctx, w); {
		case apierrors.IsForbidden(err):
			denied, fixes = append(denied, w.Namespace), append(fixes, u.grantCommands(w))
		default:
			failed = errors.Join(failed, err)
		}
	}
	switch {
	case len(denied) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, reasonNotPermitted
		c.Message = fmt.Sprintf("%sthe operator may not write Secret %s in %s; fix: %s", mayLack, wanted[0].Name,
			strings.Join(denied, " and "), strings.Join(fixes, " && "))
	case failed != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonNotWritten, mayLack+failed.Error()
	}
	c.Message = published.Shorten(c.Message)
	return c, failed
}

// grantCommands returns the commands with which an administrator lets the operator write a Secret. They make what
// deploy has for it.
func (u *UserData) grantCommands(s corev1.Secret) string {
	const name = "windows-machine-config-operator"
	return fmt.Sprintf("oc -n %[1]s create role %[2]s --verb=get,create,patch --resource=secrets "+
		"--resource-name=%[3]s && oc -n %[1]s create rolebinding %[2]s --role=%[2]s --serviceaccount=%[4]s:%[2]s",
		s.Namespace, name, s.Name, u.Login.Namespace)
}

func (u *UserData) clusterPlatform(ctx context.Context) (bundle.Platform, error) {
	var infrastructure configv1.Infrastructure
	if err := u.Reader.Get(ctx, client.ObjectKey{Name: "cluster"}, &infrastructure); err != nil {
		return "", fmt.Errorf("reading Infrastructure cluster: %w", err)
	}
	if infrastructure.Status.PlatformStatus == nil {
		return "", nil
	}
	return bundle.Platform(infrastructure.Status.PlatformStatus.Type), nil
}

// secretNamespaces are those of machine-api and, where it exists, of the Cluster API.
func (u *UserData) secretNamespaces(ctx context.Context) ([]string, error) {
	var list []string
	for _, name := range []string{base.MachinesNamespace, machines.ClusterAPINamespace} {
		var ns corev1.Namespace
		err := u.Live.Get(ctx, client.ObjectKey{Name: name}, &ns)
		switch {
		case err == nil && ns.DeletionTimestamp == nil:
			list = append(list, name)
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("reading Namespace %s: %w", name, err)
		}
	}
	return list, nil
}

// writeSecret writes one Secret, if it differs.
func (u *UserData) writeSecret(ctx context.Context, want corev1.Secret) error {
	have := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name}}
	err := u.Live.Get(ctx, client.ObjectKeyFromObject(&have), &have)
	switch {
	case apierrors.IsNotFound(err):
		err = named.CreateIfAbsent(ctx, u.Client, &want)
	case err != nil || reflect.DeepEqual(have.Data, want.Data):
	default:
		err = u.replaceSecret(ctx, have, want.Data)
	}
	if err != nil {
		return fmt.Errorf("writing Secret %s/%s: %w", want.Namespace, want.Name, err)
	}
	return nil
}

// replaceSecret makes a Secret, as it was read, hold this data and no other. Its type, which cannot be changed, its
// labels and its annotations stay.
func (u *UserData) replaceSecret(ctx context.Context, have corev1.Secret, want map[string][]byte) error {
	data := map[string]any{}
	for key := range have.Data {
		data[key] = nil
	}
	for key, value := range want {
		data[key] = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": have.ResourceVersion}, "data": data})
	if err != nil {
		return err
	}
	return u.Client.Patch(ctx, &have, client.RawPatch(types.MergePatchType, patch))
}
