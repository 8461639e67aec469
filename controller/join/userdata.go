package join

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/bundle"
	"wmco/controller/hosts"
	"wmco/controller/keys"
)

// UserData keeps the Secrets with the user data of new Machines. It replaces no Machine.
type UserData struct {
	// Reader is the cache of the inputs, unstructured; Live reads Secrets and Namespaces without one.
	Reader, Live client.Reader
	Client       client.Client
	Login        *hosts.Login
	Events       events.EventRecorder
	Log          logr.Logger
}

// recheckKeys is how often the Secrets are compared although nothing was seen to change: those of other namespaces are not watched.
const recheckKeys = time.Minute

// Reconcile writes the Secrets that differ. A key that cannot be used is told, and changes none.
func (u *UserData) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	key, findings, err := u.Login.Key(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if findings.Refused() {
		f := findings.Sorted()[0]
		about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: u.Login.Namespace, Name: keys.SecretName}
		u.Events.Eventf(about, nil, corev1.EventTypeWarning, f.Reason, actionJoin, "%s; fix: %s", f.Message, f.Fix)
		return reconcile.Result{RequeueAfter: recheckKeys}, nil
	}
	platform, err := u.platform(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	namespaces, err := u.namespaces(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	wanted, err := keys.UserDataSecrets(platform, key, namespaces)
	if err != nil {
		return reconcile.Result{}, err
	}
	for _, w := range wanted {
		if err := u.put(ctx, w); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: recheckKeys}, nil
}

func (u *UserData) platform(ctx context.Context) (bundle.Platform, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(configv1.GroupVersion.WithKind("Infrastructure"))
	if err := u.Reader.Get(ctx, client.ObjectKey{Name: "cluster"}, o); err != nil {
		return "", fmt.Errorf("reading Infrastructure cluster: %w", err)
	}
	text, _, _ := unstructured.NestedString(o.Object, "status", "platformStatus", "type")
	return bundle.Platform(text), nil
}

// namespaces are those of machine-api and, where it exists, of the Cluster API.
func (u *UserData) namespaces(ctx context.Context) ([]string, error) {
	var list []string
	for _, name := range []string{machinesNamespace, keys.ClusterAPINamespace} {
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

// put writes one Secret, if it differs.
func (u *UserData) put(ctx context.Context, want corev1.Secret) error {
	have := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name}}
	err := u.Live.Get(ctx, client.ObjectKeyFromObject(&have), &have)
	switch {
	case apierrors.IsNotFound(err):
		err = u.Client.Create(ctx, &want)
	case err != nil || reflect.DeepEqual(have.Data, want.Data):
	default:
		have.Data = want.Data
		err = u.Client.Update(ctx, &have)
	}
	if err != nil {
		return fmt.Errorf("writing Secret %s/%s: %w", want.Namespace, want.Name, err)
	}
	return nil
}
