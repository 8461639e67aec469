package kubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/certificate"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/test/simnode/identity"
)

// Host is the machine that the kubelet runs on.
type Host interface {
	identity.Files
	List(ctx context.Context, folder string) ([]plan.FileInfo, error)
	Services(ctx context.Context, names []string) ([]plan.ServiceState, error)
	Facts(ctx context.Context) (bundle.Facts, error)
	RemoveFile(path string) error
}

// Options are what a kubelet needs.
type Options struct {
	Host Host
	// Argv is the command line of its service.
	Argv []string
	// Containers are those of the container runtime, which outlive the kubelet.
	Containers *Containers
	Hardware   Hardware
	Times      Times
	Now        func() time.Time
	Log        *slog.Logger
	// Healthy is called with the targets of probes that succeed from then on.
	Healthy func(targets ...string)
	// Serves reports whether it listens, on an address that this computer has.
	Serves bool
	// Wrap changes how its requests are sent.
	Wrap identity.Wrap
}

// Hardware is what a machine has.
type Hardware struct {
	CPUs int64
	// Memory and Disk are in bytes.
	Memory, Disk int64
}

// Times are those of the real kubelet where they are zero.
type Times struct {
	// Status is the time between two comparisons of the Node with the machine, Report between two reports of what has
	// not changed, Fast between two comparisons before the Node is Ready for the first time.
	Status, Report, Fast time.Duration
	// Register is the first pause between two attempts to register; it doubles up to 7 s.
	Register time.Duration
	// Lease is the time between two renewals of the Lease.
	Lease time.Duration
	// Certificate is the time between two looks whether the certificate was renewed; NoCertificate is how long the
	// kubelet runs without one while the API server answers.
	Certificate, NoCertificate time.Duration
	// PodStart is how long a pod takes to become Ready, PodStop how long it takes to end when it is asked to.
	PodStart, PodStop time.Duration
}

// FastTimes are for tests.
func FastTimes() Times {
	return Times{
		Status: 500 * time.Millisecond, Report: 5 * time.Second, Fast: 50 * time.Millisecond, Register: 50 * time.Millisecond, Lease: time.Second,
		Certificate: 200 * time.Millisecond, PodStart: 100 * time.Millisecond, PodStop: 100 * time.Millisecond,
	}
}

// withDefaults are the times of Kubernetes 1.36: syncNodeStatus, fastNodeStatusUpdate, registerWithAPIServer,
// NewLeaseController and UpdateTransport.
func (t Times) withDefaults(c kubeletv1beta1.KubeletConfiguration) Times {
	setZero(&t.Status, c.NodeStatusUpdateFrequency.Duration)
	setZero(&t.Status, 10*time.Second)
	setZero(&t.Report, c.NodeStatusReportFrequency.Duration)
	if c.NodeStatusUpdateFrequency.Duration != 0 {
		setZero(&t.Report, t.Status)
	}
	setZero(&t.Report, 5*time.Minute)
	setZero(&t.Fast, 100*time.Millisecond)
	setZero(&t.Register, 100*time.Millisecond)
	setZero(&t.Lease, time.Duration(c.NodeLeaseDurationSeconds)*time.Second/4)
	setZero(&t.Certificate, 10*time.Second)
	setZero(&t.NoCertificate, 5*time.Minute)
	setZero(&t.PodStart, 2*time.Second)
	setZero(&t.PodStop, time.Second)
	return t
}

// kubelet is one process.
type kubelet struct {
	Options
	flags  flags
	config kubeletv1beta1.KubeletConfiguration
	taints []corev1.Taint
	name   string
	// version is that of the executable.
	version string
	// certificate is that of the client.
	certificate certificate.Manager
	client      *identity.Client
	core        corev1client.CoreV1Interface
	leases      coordinationv1client.LeasesGetter
	cni         cniFolder

	// mu guards addresses, which the serving certificate is for.
	mu        sync.Mutex
	addresses []corev1.NodeAddress
}

// Run is the process. It returns nil when it was asked to stop, and an error when it exits otherwise.
func Run(ctx context.Context, o Options) error {
	k, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(identity.Context(ctx, o.Log))
	defer stop(nil)
	client, err := k.startClientCertificate(ctx)
	if err != nil {
		return err
	}
	k.client = client
	defer client.Close()
	if err := k.connect(); err != nil {
		return err
	}
	serving, err := k.startServingCertificate(ctx)
	if err != nil {
		return err
	}
	o.Healthy(k.healthz())
	var parts sync.WaitGroup
	if o.Serves && serving != nil {
		parts.Go(func() {
			if err := k.serveLogs(ctx, serving); err != nil {
				stop(err)
			}
		})
	}
	parts.Go(func() {
		if err := k.watchCertificate(ctx); err != nil {
			stop(err)
		}
	})
	parts.Go(func() { k.keepNode(ctx) })
	parts.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// prepare reads the command line and the configuration.
func prepare(ctx context.Context, o Options) (*kubelet, error) {
	k := &kubelet{Options: o}
	var err error
	if k.flags, err = parseFlags(o.Argv); err != nil {
		return nil, err
	}
	text, err := o.Host.ReadFile(k.flags.config)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	if k.config, err = readConfig(text, o.Log, k.Hardware.CPUs); err != nil {
		return nil, fmt.Errorf("reading the configuration %s: %w", k.flags.config, err)
	}
	if k.version, err = versionOf(o.Host); err != nil {
		return nil, err
	}
	k.Times = o.Times.withDefaults(k.config)
	k.taints = k.config.RegisterWithTaints
	for _, text := range k.flags.taints {
		t, err := parseTaint(text)
		if err != nil {
			return nil, err
		}
		k.taints = append(k.taints, t)
	}
	facts, err := o.Host.Facts(ctx)
	if err != nil {
		return nil, err
	}
	k.name = nodeName(k.flags.hostName, facts.HostName)
	if k.name == "" {
		return nil, errors.New("empty hostname is invalid")
	}
	return k, nil
}

// nodeName follows GetHostname of k8s.io/component-helpers/node/util.
func nodeName(override, host string) string {
	if override != "" {
		host = override
	}
	return strings.ToLower(strings.TrimSpace(host))
}

// healthz is where the kubelet answers probes of its health.
func (k *kubelet) healthz() string {
	return "http://" + net.JoinHostPort(k.config.HealthzBindAddress, strconv.Itoa(int(*k.config.HealthzPort))) + "/healthz"
}

// Healthz is where a kubelet answers whose configuration does not say another address.
const Healthz = "http://127.0.0.1:10248/healthz"

func (k *kubelet) connect() error {
	core, err := corev1client.NewForConfigAndClient(k.client.Config, k.client.HTTP)
	if err != nil {
		return err
	}
	leases, err := coordinationv1client.NewForConfigAndClient(k.client.Config, k.client.HTTP)
	k.core, k.leases = core, leases
	return err
}

// every calls a function now and then, until the context ends.
func every(ctx context.Context, pause func() time.Duration, do func()) {
	for {
		do()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause()):
		}
	}
}
