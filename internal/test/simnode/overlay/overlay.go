package overlay

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/certificate"

	"wmco/applier/agent"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/simnode/identity"
)

// The identity of the program, and its annotations on the Node (hybrid-overlay/pkg/types).
const (
	UserPrefix         = "system:ovn-node:"
	Group              = "system:ovn-nodes"
	SubnetAnnotation   = "k8s.ovn.org/hybrid-overlay-node-subnet"
	GatewayAnnotation  = "k8s.ovn.org/hybrid-overlay-distributed-router-gateway-mac"
	baseNetwork        = "BaseOVNKubernetesHybridOverlayNetwork"
	baseSubnet         = "100.64.0.0/30"
	overlayNetwork     = "OVNKubernetesHybridOverlayNetwork"
	certificatePrefix  = "ovnkube-client"
	defaultCertificate = 10 * time.Minute
)

// Host is the machine that the program runs on.
type Host interface {
	identity.Files
	Edit(ctx context.Context, change func(*simulation.State)) error
}

// Options are what the program needs.
type Options struct {
	Host Host
	// Argv is the command line of its service.
	Argv []string
	Now  func() time.Time
	Log  *slog.Logger
	// Wait is how long it waits for its certificate; zero is the real two minutes. Check is the time between two looks
	// whether the certificate was renewed; zero is 10 s.
	Wait, Check time.Duration
	// Wrap changes how its requests are sent.
	Wrap identity.Wrap
}

// flags are the command line.
type flags struct {
	node, bootstrap, certDir, server, ca string
	duration                             time.Duration
}

func parseFlags(argv []string) (flags, error) {
	if len(argv) == 0 {
		return flags{}, errors.New("the command is empty")
	}
	var f flags
	set := pflag.NewFlagSet(argv[0], pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.node, "node", "", "")
	set.StringVar(&f.bootstrap, "bootstrap-kubeconfig", "", "")
	set.StringVar(&f.certDir, "cert-dir", "", "")
	set.DurationVar(&f.duration, "cert-duration", defaultCertificate, "")
	set.StringVar(&f.server, "k8s-apiserver", "", "")
	set.StringVar(&f.ca, "k8s-cacert", "", "")
	set.Bool("windows-service", false, "")
	for _, name := range []string{"config-file", "logfile", "logfile-maxage", "logfile-maxbackups", "logfile-maxsize", "loglevel", "hybrid-overlay-vxlan-port"} {
		set.String(name, "", "")
	}
	if err := set.Parse(argv[1:]); err != nil {
		return f, fmt.Errorf("reading the flags: %w", err)
	}
	if f.node == "" || f.bootstrap == "" {
		return f, errors.New("reading the flags: --node and --bootstrap-kubeconfig are needed")
	}
	return f, nil
}

// Run is the process. It returns nil when it was asked to stop, and an error when it exits otherwise.
func Run(ctx context.Context, o Options) error {
	if o.Wait == 0 {
		o.Wait = 2 * time.Minute
	}
	if o.Check == 0 {
		o.Check = 10 * time.Second
	}
	f, err := parseFlags(o.Argv)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(identity.Context(ctx, o.Log))
	defer stop(nil)
	client, manager, err := o.connectToCluster(ctx, f)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := o.await(ctx, manager); err != nil || ctx.Err() != nil {
		return err
	}
	core, err := corev1client.NewForConfigAndClient(client.Config, client.HTTP)
	if err != nil {
		return err
	}
	node := &node{Options: o, name: f.node, core: core}
	go node.watchNode(ctx, stop)
	for {
		select {
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		case <-time.After(o.Check):
		}
		client.Renewed()
		if manager.Current() == nil {
			return errors.New("the current certificate is invalid, exiting")
		}
	}
}

// connectToCluster follows StartNodeCertificateManager.
func (o Options) connectToCluster(ctx context.Context, f flags) (*identity.Client, certificate.Manager, error) {
	bootstrap, err := agent.Connection{Kubeconfig: f.bootstrap, ReadFile: o.Host.ReadFile}.RESTConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("reading the bootstrap kubeconfig: %w", err)
	}
	ca, err := o.Host.ReadFile(f.ca)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the CA: %w", err)
	}
	var client *identity.Client
	manager, err := certificate.NewManager(&certificate.Config{
		ClientsetFn:                  identity.Clients(o.Wrap.Config(bootstrap), func() *identity.Client { return client }),
		Template:                     &x509.CertificateRequest{Subject: pkix.Name{CommonName: UserPrefix + f.node, Organization: []string{Group}}},
		RequestedCertificateLifetime: &f.duration,
		SignerName:                   certificatesv1.KubeAPIServerClientSignerName,
		Usages:                       []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		CertificateStore:             identity.Store{Files: o.Host, Folder: f.certDir, Prefix: certificatePrefix, Now: o.Now},
		Ctx:                          &ctx,
	})
	if err != nil {
		return nil, nil, err
	}
	client, err = identity.NewClient(&rest.Config{Host: f.server, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, manager, o.Wrap)
	if err != nil {
		return nil, nil, err
	}
	manager.Start()
	return client, manager, nil
}

// awaitPause is the time between two looks for the first certificate.
const awaitPause = 100 * time.Millisecond

func (o Options) await(ctx context.Context, m certificate.Manager) error {
	for end := time.Now().Add(o.Wait); m.Current() == nil; {
		if time.Now().After(end) {
			return errors.New("the certificate was not signed")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(awaitPause):
		}
	}
	return nil
}

// node is the part that makes the networks of the node.
type node struct {
	Options
	name string
	core corev1client.CoreV1Interface
	// subnet is that for which the networks were made.
	subnet string
}

// watchNode calls update whenever the Node changes, and ends the program with its error.
func (n *node) watchNode(ctx context.Context, stop context.CancelCauseFunc) {
	own := fields.OneTermEqualSelector(metav1.ObjectNameField, n.name).String()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = own
			return n.core.Nodes().List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = own
			return n.core.Nodes().Watch(ctx, o)
		},
	}
	tell := func(o any) {
		object, ok := o.(*corev1.Node)
		if !ok {
			return
		}
		if err := n.updateNetworks(ctx, object); err != nil && ctx.Err() == nil {
			stop(err)
		}
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source, ObjectType: &corev1.Node{},
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, now any) { tell(now) }},
	})
	controller.RunWithContext(ctx)
}

// updateNetworks makes the networks when the Node has a subnet, and again when it has another one.
func (n *node) updateNetworks(ctx context.Context, object *corev1.Node) error {
	subnet := object.Annotations[SubnetAnnotation]
	if subnet == "" || subnet == n.subnet {
		return nil
	}
	if _, _, err := net.ParseCIDR(subnet); err != nil {
		return fmt.Errorf("reading %s: %w", SubnetAnnotation, err)
	}
	var address string
	for _, a := range object.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			address = a.Address
		}
	}
	err := n.Host.Edit(ctx, func(s *simulation.State) {
		s.Facts.Networks = withNetworks(s.Facts.Networks, bundle.HNSNetwork{Name: baseNetwork, AddressPrefix: baseSubnet},
			bundle.HNSNetwork{Name: overlayNetwork, AddressPrefix: subnet, ManagementIP: address})
	})
	if err != nil {
		return err
	}
	n.subnet = subnet
	n.Log.Info("made the networks", "subnet", subnet)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{GatewayAnnotation: gatewayMAC(n.name)}}})
	if err != nil {
		return err
	}
	if _, err := n.core.Nodes().Patch(ctx, n.name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		n.Log.Error("writing the annotation", "error", err) // the real one goes on, too
	}
	return nil
}

// withNetworks replaces networks by name.
func withNetworks(list []bundle.HNSNetwork, more ...bundle.HNSNetwork) []bundle.HNSNetwork {
	for _, m := range more {
		list = append(slices.DeleteFunc(slices.Clone(list), func(old bundle.HNSNetwork) bool { return old.Name == m.Name }), m)
	}
	return list
}

// Boot removes what a boot of Windows removes: the overlay network is not persistent, and endpoints are not either.
func Boot(s *simulation.State) {
	s.Facts.Networks = slices.DeleteFunc(slices.Clone(s.Facts.Networks), func(n bundle.HNSNetwork) bool { return n.Name == overlayNetwork })
	for key, x := range s.Settings {
		if x.Kind == bundle.KindEndpoint && strings.HasPrefix(x.Value, overlayNetwork+"/") {
			delete(s.Settings, key)
		}
	}
}

// gatewayMAC is a MAC address with the prefix of those that Windows makes.
func gatewayMAC(node string) string {
	sum := strings.ToUpper(strings.TrimPrefix(string(bundle.Of([]byte(node))), "sha256:"))
	return fmt.Sprintf("00-15-5D-%s-%s-%s", sum[:2], sum[2:4], sum[4:6])
}
