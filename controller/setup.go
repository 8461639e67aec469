package controller

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"wmco/bundle"
	"wmco/controller/base"
	"wmco/controller/desired"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/heartbeat"
	"wmco/controller/hosts"
	"wmco/controller/inputs"
	"wmco/controller/join"
	"wmco/controller/leader"
	"wmco/controller/metrics"
	"wmco/controller/named"
	"wmco/controller/olm"
	"wmco/controller/signing"
	"wmco/controller/windowsnode"
	"wmco/payload"
)

const (
	// operatorName is the name of the operator's Deployment and of its Lease.
	operatorName = "windows-machine-config-operator"
	// keySecret holds the key of the digests of secrets, which must be the same as long as the cluster lives.
	keySecret = "windows-digest-key"
	keyField  = "key"
	keySize   = 32
)

// The times of leader election that OpenShift asks of operators: a restarted control plane takes the Lease from nobody
// (github.com/openshift/enhancements, CONVENTIONS.md, High Availability).
const (
	leaseDuration = 137 * time.Second
	renewDeadline = 107 * time.Second
	retryPeriod   = 26 * time.Second
)

// Lease is how long a leader is one without renewing that, how long it tries to, and how often it and others try.
type Lease struct{ Duration, Renew, Retry time.Duration }

// Options are how the operator runs.
type Options struct {
	Config *rest.Config
	// Namespace is that of the operator; empty is gather.OperatorNamespace.
	Namespace string
	// Version is that of the operator, which nodes get as their version when they have joined.
	Version string
	// Payload has the digests of the executables.
	Payload payload.Set
	// Environment is that of this process, in which OLM sets the proxy.
	Environment map[string]string
	// HealthAddress and MetricsAddress are host:port; "0" serves nothing there.
	HealthAddress, MetricsAddress string
	// MetricsCertificates is the folder with the certificate of the metrics (metrics.Serving).
	MetricsCertificates string
	// SkipNameValidation lets one process run the operator again, as tests do: controller-runtime's metrics know a controller by its name.
	SkipNameValidation bool
	// Resolver looks up instances that are given by name; nil is that of this process.
	Resolver join.Resolver
	// LeaderElection lets one process of several work.
	LeaderElection bool
	// Lease are the times of leader election; zero are those that OpenShift asks for.
	Lease Lease
	// Hosts reaches hosts over SSH with a Login. Without it, the operator publishes and reaches none.
	Hosts func(*hosts.Login) *hosts.Hosts
	// Traffic returns how many bytes were sent and received over SSH since the process began; nil is none.
	Traffic func() (sent, received int64)
	Log     logr.Logger
	// Now is the wall clock, which may be set at any time: its times are for people and for what lasts days. Elapsed is a monotonic clock, which is
	// decided by. Nil are those of this computer.
	Now     func() time.Time
	Elapsed func() time.Duration

	// Silence says for how long the agent of a node has been silent; nil is what this process observes.
	Silence windowsnode.Silence
	// heartbeats is what this process observes of the node agents.
	heartbeats *heartbeat.Watch
	// settle is that of the inputs; tests on a busy computer have a longer one.
	settle time.Duration
}

// Run works until the context ends.
func Run(ctx context.Context, o Options) error {
	m, err := New(ctx, o)
	if err != nil {
		return err
	}
	return m.Start(ctx)
}

// New connects to the cluster, and returns the operator, which works once it is started.
func New(ctx context.Context, o Options) (manager.Runnable, error) {
	if o.Namespace == "" {
		o.Namespace = gather.OperatorNamespace
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Elapsed == nil {
		o.Elapsed = heartbeat.Monotonic()
	}
	o.heartbeats = heartbeat.NewWatch(o.Now, o.Elapsed)
	if o.Silence == nil {
		o.Silence = o.heartbeats.Silence
	}
	wants := gather.Wants(o.Namespace)
	o.Config = paced(o.Config)
	if err := awaitPredecessor(ctx, o); err != nil {
		return nil, startError("looking for the existing operator", err)
	}
	m, err := newManager(o, wants)
	if err != nil {
		return nil, startError("starting the operator", err)
	}
	// Before anything else is written. Whoever cannot apply it is told by a condition, once the operator works.
	if err := policies(m, o.Namespace).BindOperator(ctx); err != nil {
		o.Log.Info("no admission policy binds the Secrets that the operator may write", "error", err.Error(), "condition", join.SecretWritesBound)
	}
	if err := createLease(ctx, m, o); err != nil {
		return nil, startError("starting the operator", err)
	}
	key, err := digestKey(ctx, m, o.Namespace)
	if err != nil {
		return nil, startError("starting the operator", err)
	}
	records := &hosts.Records{Live: m.GetAPIReader(), Client: m.GetClient(), Cache: m.GetClient(), Namespace: o.Namespace}
	signs := &signing.Keys{Live: m.GetAPIReader(), Client: m.GetClient(), Namespace: o.Namespace, Now: o.Now}
	reader := &inputs.Reader{
		Keys: signs, Records: records, Log: o.Log.WithName("inputs"), Cache: m.Kinds.Reader(m.GetClient()), Namespace: o.Namespace, Resolver: o.Resolver, Now: time.Now,
		Source: desired.Source{
			Objects: objects.Cluster(m.Kinds.Reader(m.GetClient())), Set: o.Payload, Key: key,
			Gather: gather.Options{Namespace: o.Namespace, Complete: true, Environment: o.Environment},
		},
	}
	says := newSaid(o)
	read := (&inputs.Coalesced{Source: reader.Read}).Read
	p := publishing{wants, read, says, signs, records, join.NewExecutables(o.Payload)}
	if err := errors.Join(addPublisher(ctx, m, o, p), addJoining(ctx, m, o, p), addMetrics(m, o, says), addUpgradeable(m, o)); err != nil {
		return nil, startError("starting the operator", err)
	}
	return m, nil
}

func newManager(o Options, wants []objects.Want) (base.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, certificatesv1.AddToScheme, machinev1beta1.Install} {
		if err := add(scheme); err != nil {
			return base.Manager{}, err
		}
	}
	if o.Lease == (Lease{}) {
		o.Lease = Lease{leaseDuration, renewDeadline, retryPeriod}
	}
	serving := &metrics.Serving{Address: o.MetricsAddress, Certificates: o.MetricsCertificates}
	served, err := serving.Options()
	if err != nil {
		return base.Manager{}, err
	}
	var lock *leader.Lock
	if o.LeaderElection {
		if lock, err = base.NewLock(o.Config, types.NamespacedName{Namespace: o.Namespace, Name: operatorName}, o.Lease.Renew); err != nil {
			return base.Manager{}, err
		}
	}
	refused := base.NewRefusedWatches()
	options := manager.Options{
		Scheme: scheme, Logger: o.Log, Cache: base.CacheOptions(wants), NewCache: base.NewCache(wants, refused),
		Client:                 client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		HealthProbeBindAddress: o.HealthAddress, Metrics: served,
		Controller:     config.Controller{SkipNameValidation: &o.SkipNameValidation},
		LeaderElection: o.LeaderElection, LeaderElectionID: operatorName, LeaderElectionNamespace: o.Namespace, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: &o.Lease.Duration, RenewDeadline: &o.Lease.Renew, RetryPeriod: &o.Lease.Retry,
	}
	if lock != nil {
		options.LeaderElectionResourceLockInterface = lock
	}
	again := base.NewRetries()
	watched := rest.CopyConfig(o.Config)
	watched.Wrap(again.Transport)
	m, err := manager.New(base.GuardWrites(watched, lock), options)
	if err != nil {
		return base.Manager{}, err
	}
	if lock != nil {
		lock.LockConfig.EventRecorder = m.GetEventRecorderFor(lock.Identity()) //nolint:staticcheck // leader election has no other kind yet
	}
	serving.Cluster = m.GetClient()
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return base.Manager{}, err
	}
	if err := m.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return base.Manager{}, err
	}
	missing := base.NewKinds(m.GetRESTMapper(), m.GetAPIReader(), refused, o.Log.WithName("kinds"))
	return base.NewManager(m, lock, again, missing)
}

// createLease creates the Lease of leader election, without a holder, where there is none: by its name, which the library does not do.
func createLease(ctx context.Context, m manager.Manager, o Options) error {
	if !o.LeaderElection {
		return nil
	}
	return named.Create(ctx, m.GetClient(), &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: operatorName},
	})
}

// digestKey returns the key of secret digests, and makes it once. It is read without a cache: there is none yet.
func digestKey(ctx context.Context, m manager.Manager, namespace string) (bundle.Key, error) {
	at := client.ObjectKey{Namespace: namespace, Name: keySecret}
	for {
		var secret corev1.Secret
		err := m.GetAPIReader().Get(ctx, at, &secret)
		switch {
		case err == nil && len(secret.Data[keyField]) >= keySize:
			return secret.Data[keyField], nil
		case err == nil:
			return nil, fmt.Errorf("Secret %s has no key %q of at least %d bytes: remove the Secret, and a new one is made", at, keyField, keySize) //nolint:staticcheck // a kind is written so
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("reading Secret %s: %w", at, err)
		}
		key := make([]byte, keySize)
		_, _ = rand.Read(key) // crypto/rand documents that it never fails
		secret = corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}, Data: map[string][]byte{keyField: key}, Immutable: new(true)}
		if err := m.GetClient().Create(ctx, &secret); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("creating Secret %s: %w", at, err)
		}
	}
}

// addUpgradeable does nothing where OLM gives the operator no OperatorCondition.
func addUpgradeable(m base.Manager, o Options) error {
	name := o.Environment[olm.ConditionVariable]
	if name == "" {
		return nil
	}
	u := &olm.Upgradeable{
		Nodes: m.GetClient(), Decoded: m.Decoded, Live: m.GetAPIReader(), Client: m.GetClient(), Namespace: o.Namespace, Name: name, Now: o.Now, Silence: o.Silence,
	}
	return u.SetupWithManager(m)
}
