package controller

import (
	"context"
	"fmt"
	"net/http"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"wmco/controller/base"
	"wmco/controller/base/leader"
	"wmco/controller/base/ports"
	"wmco/controller/gather"
	"wmco/controller/metrics"
)

// The times of leader election that OpenShift asks of operators: a restarted control plane takes the Lease from no operator
// (github.com/openshift/enhancements, CONVENTIONS.md, High Availability).
const (
	leaseDuration = 137 * time.Second
	renewDeadline = 107 * time.Second
	retryPeriod   = 26 * time.Second
)

// Lease is how long a leader is one without renewing that, how long it tries to, and how often it and others try.
type Lease struct{ Duration, Renew, Retry time.Duration }

// newManager returns the manager with its caches, its metrics and, if asked, its Lease.
func newManager(ctx context.Context, o Options) (base.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme,
		certificatesv1.AddToScheme, machinev1beta1.Install, configv1.Install} {
		if err := add(scheme); err != nil {
			return base.Manager{}, err
		}
	}
	if o.Lease == (Lease{}) {
		o.Lease = Lease{leaseDuration, renewDeadline, retryPeriod}
	}
	var lock *leader.Lock
	if o.LeaderElection {
		var err error
		if lock, err = base.NewLock(o.Config, types.NamespacedName{Namespace: o.Namespace, Name: operatorName},
			o.Lease.Renew); err != nil {
			return base.Manager{}, err
		}
	}
	refused := base.NewRefusedWatches()
	options := manager.Options{
		Scheme: scheme, Logger: o.Log, Cache: base.CacheOptions(gather.WantedObjects(o.Namespace)),
		NewCache:               base.NewCache(gather.WantedObjects(o.Namespace), refused),
		Client:                 client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		HealthProbeBindAddress: nowhere, Metrics: server.Options{BindAddress: nowhere}, // addServers
		Controller:     config.Controller{SkipNameValidation: &o.SkipNameValidation},
		LeaderElection: o.LeaderElection, LeaderElectionID: operatorName, LeaderElectionNamespace: o.Namespace,
		LeaderElectionReleaseOnCancel: true, GracefulShutdownTimeout: new(base.StopWithin),
		LeaseDuration: &o.Lease.Duration, RenewDeadline: &o.Lease.Renew, RetryPeriod: &o.Lease.Retry,
	}
	if lock != nil {
		options.LeaderElectionResourceLockInterface = lock
	}
	again := base.NewRetries(o.Clock)
	watched := rest.CopyConfig(o.Config)
	watched.Wrap(again.WrapTransport)
	m, err := manager.New(base.GuardWrites(watched, lock), options)
	if err != nil {
		return base.Manager{}, err
	}
	if lock != nil {
		lock.LockConfig.EventRecorder = m.GetEventRecorderFor(lock.Identity()) //nolint:staticcheck // leader election has no other kind yet
	}
	if err := addServers(ctx, m, o); err != nil {
		return base.Manager{}, err
	}
	missing := base.NewKinds(m.GetRESTMapper(), m.GetAPIReader(), refused, o.Log.WithName("kinds"))
	operator, err := base.NewManager(m, lock, again, missing, gather.WantedObjects(o.Namespace))
	operator.Pages = o.Pages
	return operator, err
}

// nowhere is the address at which nothing listens.
const nowhere = "0"

// addServers adds the servers of probes and metrics, for this process whether it leads or not.
func addServers(ctx context.Context, m manager.Manager, o Options) error {
	if o.HealthAddress != "" && o.HealthAddress != nowhere {
		probes := ports.Server(probesHandler(""))
		probes.Addr = o.HealthAddress
		if err := m.Add(&manager.Server{Name: "health", Server: probes,
			ShutdownTimeout: new(ports.StopWithin)}); err != nil {
			return err
		}
	}
	serving := &metrics.Serving{
		Profile: gather.ServerTLSProfile, Address: o.MetricsAddress, Certificates: o.MetricsCertificates,
		Cluster: base.TypedClient(m.GetClient(), gather.WantedObjects(o.Namespace)),
	}
	return serving.AddTo(ctx, m)
}

// probesHandler answers the probes of the kubelet. It is ready unless there is a reason why not.
func probesHandler(notReady string) http.Handler {
	mux := http.NewServeMux()
	ok := func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") }
	mux.HandleFunc("/healthz", ok)
	if notReady == "" {
		mux.HandleFunc("/readyz", ok)
		return mux
	}
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, notReady, http.StatusServiceUnavailable)
	})
	return mux
}
