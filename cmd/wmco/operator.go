package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	cryptossh "golang.org/x/crypto/ssh"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"wmco/applier/remote"
	"wmco/applier/remote/ssh"
	"wmco/bundle/published"
	"wmco/controller"
	controllerhosts "wmco/controller/hosts"
	"wmco/internal/cli"
	"wmco/payload/store"
)

// operatorFlags are those of `wmco operator`.
type operatorFlags struct {
	options controller.Options
	payload string
	program string
	port    int
}

// sshPort is the port of the SSH servers that user data sets up.
const sshPort = 22

func operatorCommand(a app) *cobra.Command {
	var f operatorFlags
	cmd := &cobra.Command{
		Use:   "operator [--payload DIR]",
		Short: "Run the operator",
		Long: `Watch the objects of the cluster, render the bundle of every joined Windows node when they change, and publish it: layers as Secrets
of the operator's namespace, the desired digest on the Node. The node agents fetch and apply it.

With --payload or --node-program, hosts are reached over SSH, with the key of Secret cloud-private-key and the pinned host keys
(ConfigMaps windows-hosts-0 to -f): Windows Machines and entries of ConfigMap windows-instances become nodes, removed instances are
cleaned up, and an agent that has been silent for half an hour is repaired.

Metrics need a bearer token with permission for /metrics. Their TLS follows the TLS profile of the cluster.

Refused inputs change nothing. The cluster is that of the Pod's service account, of KUBECONFIG, or of ~/.kube/config.` +
			cli.ExitHelp(
				"0  stopped on request", "2  invalid usage, or an invalid payload",
				"3  the cluster cannot be reached, or another process works for it", "130  interrupted",
			),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), a) },
	}
	flags := cmd.Flags()
	addNamespace(cmd, &f.options.Namespace)
	flags.StringVar(
		&f.payload, "payload", "",
		"folder written by 'make payload'; its executables are verified and become part of the bundles",
	)
	flags.StringVar(&f.program, "node-program", "", "the wmco-node.exe to copy to hosts (default that of --payload)")
	flags.IntVar(&f.port, "ssh-port", sshPort, "TCP port of the hosts' SSH servers")
	flags.StringVar(&f.options.HealthAddress, "health-address", ":8081", "address of /healthz and /readyz; 0 disables them")
	flags.StringVar(
		&f.options.MetricsAddress, "metrics-address", "0",
		"address of metrics over TLS, such as :9182; 0 disables them",
	)
	flags.StringVar(
		&f.options.MetricsCertificates, "metrics-certificates", "",
		"folder with tls.crt and tls.key for metrics, read again when they change (self-signed while there are none)",
	)
	flags.StringVar(
		&f.options.Warnings.Address, "webhook-address", "0",
		"address of the warning webhook, such as :9183 (deploy/warnings); 0 disables it",
	)
	flags.StringVar(
		&f.options.Warnings.Certificates, "webhook-certificates", "",
		"folder with tls.crt and tls.key of the webhook, read again when they change (it does not serve without them)",
	)
	flags.BoolVar(&f.options.LeaderElection, "leader-election", true, "wait until no other process works for this cluster")
	return cmd
}

func (f *operatorFlags) run(ctx context.Context, a app) error {
	o := f.options
	o.Version, o.Pages = a.version, published.Pages(sourceTree)
	o.Log = logr.FromSlogHandler(slog.NewJSONHandler(a.stderr, nil))
	log.SetLogger(o.Log)
	klog.SetLogger(o.Log)
	if f.payload != "" {
		set, err := store.Read(ctx, f.payload)
		if err != nil {
			return fmt.Errorf("reading --payload: %w", err)
		}
		o.Payload = set
	}
	var err error
	var traffic ssh.Traffic
	o.Traffic, o.Logins = traffic.TransferredBytes, traffic.CountLogins
	if o.Hosts, err = f.newHosts(o.Log, &traffic); err != nil {
		return err
	}
	if o.Config, err = config.GetConfig(); err != nil {
		return cli.UsageError("finding the cluster: %w; set KUBECONFIG", err)
	}
	o.Environment = environmentMap()
	operator, err := controller.New(ctx, o)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("interrupted: %w", err)
	}
	if err != nil {
		return &cli.ExitError{Status: cli.ExitUnreachable, Err: err}
	}
	defer cli.Orderly(ctx)() // what was begun is published; connecting changes nothing
	return unreachableError(operator.Start(ctx))
}

// newHosts returns what reaches hosts, nil without a node agent to copy there.
func (f *operatorFlags) newHosts(
	log logr.Logger, traffic *ssh.Traffic,
) (func(*controllerhosts.Login) *controllerhosts.Hosts, error) {
	if f.payload == "" && f.program == "" {
		log.Info("no host is reached over SSH: there is neither --payload nor --node-program")
		return nil, nil
	}
	o := controllerhosts.Options{Port: strconv.Itoa(f.port)}
	var err error
	if o.Program, err = (&hostFlags{program: f.program}).nodeProgram(f.payload); err != nil {
		return nil, err
	}
	if f.payload != "" {
		opened, err := store.Open(f.payload)
		if err != nil {
			return nil, fmt.Errorf("reading --payload: %w", err)
		}
		o.Executables = opened.Source()
	}
	return func(login *controllerhosts.Login) *controllerhosts.Hosts {
		dialer := ssh.Dialer{Limits: ssh.DefaultLimits(), Pins: login, Signers: login.Signers, OnLogin: login.NoteLogin, Traffic: traffic, OnPin: func(t remote.Target, key cryptossh.PublicKey) {
			log.Info("first contact, the host key is pinned", "host", t.String(), "key", cryptossh.FingerprintSHA256(key))
		}}
		o.Transports.Kept = ssh.NewTransport(dialer)
		dialer.Limits.Kept = 0
		o.Transports.Fresh = ssh.NewTransport(dialer)
		return controllerhosts.New(o)
	}, nil
}

// unreachableError gives an error its status. The end that was asked for is none.
func unreachableError(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return nil
	}
	return &cli.ExitError{Status: cli.ExitUnreachable, Err: err}
}

// environmentMap is that of this process, by name.
func environmentMap() map[string]string {
	env := map[string]string{}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	return env
}
