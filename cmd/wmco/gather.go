package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/internal/cli"
	"wmco/report/mustgather"
)

// logWait is how long one log may take.
const logWait = 30 * time.Second

// gatherFlags are those of `wmco gather`.
type gatherFlags struct {
	clusterFlags
	out       string
	since     time.Duration
	sinceTime string
	format    cli.Format
}

// sinceFlag is a flag for the age of the oldest log lines, and the variable that `oc adm must-gather` sets for its entry
// point (openshift/enhancements, enhancements/oc/must-gather.md).
type sinceFlag struct{ flag, variable string }

func sinceFlags() []sinceFlag {
	return []sinceFlag{{"since", "MUST_GATHER_SINCE"}, {"since-time", "MUST_GATHER_SINCE_TIME"}}
}

// logsSince returns the time from which on logs of Pods are wanted, a zero one for all.
func (f *gatherFlags) logsSince(now time.Time) (time.Time, error) {
	switch {
	case f.since < 0:
		return time.Time{}, fmt.Errorf("--since %s is negative: give a time such as 2h", f.since)
	case f.since > 0:
		return now.Add(-f.since), nil
	case f.sinceTime == "":
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, f.sinceTime)
	if err != nil {
		return time.Time{}, fmt.Errorf("--since-time %q: it is no time such as 2026-01-01T12:00:00Z (RFC 3339)", f.sinceTime)
	}
	return at, nil
}

func gatherCommand(a app) *cobra.Command {
	var f gatherFlags
	cmd := &cobra.Command{
		Use:   "gather [--out DIR]",
		Short: "Write the state of the Windows nodes of a cluster to a folder, without secrets",
		Long: `Write to a folder: the objects that Windows nodes depend on, the operator's status, Events, the desired and applied bundle of each
node with digests in place of contents, the reports of its agent, its updates, and the logs of the agents and of the operator.
Secrets lose their values, other objects the fields that may hold a secret. missing.txt lists what could not be collected, and why.

It is the entry point of "oc adm must-gather --image" with the operator's image. Read the folder with --from of status, render,
validate and diff. The cluster is that of KUBECONFIG, of ~/.kube/config, or of the Pod's service account.` +
			cli.ExitHelp(
				"0  done; see missing.txt for what could not be collected", "2  usage, or a folder that cannot be written",
				"3  the cluster cannot be reached", "130  interrupted",
			),
		Example: `  oc adm must-gather --image=$(oc get deployment windows-machine-config-operator -n openshift-windows-machine-config-operator \
    -o jsonpath='{.spec.template.spec.containers[0].image}')
  wmco gather --out windows && wmco status --from windows`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), a) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.out, "out", mustgather.DefaultDir, "folder to write to")
	f.addFlags(cmd)
	flags.DurationVar(&f.since, "since", 0, "of the logs of Pods, only lines that are newer, such as 2h (default: all)")
	flags.StringVar(&f.sinceTime, "since-time", "", "of the logs of Pods, only lines after this time (RFC 3339)")
	cmd.MarkFlagsMutuallyExclusive("since", "since-time")
	cli.AddFormat(cmd, &f.format, cli.Text, cli.JSON)
	return cmd
}

func (f *gatherFlags) run(ctx context.Context, a app) error {
	begin, err := f.logsSince(a.now())
	if err != nil {
		return err
	}
	config, err := f.kube.RESTConfig(logWait)
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return &gather.UnreachableError{Err: fmt.Errorf("connecting to the cluster: %w", err)}
	}
	logs, err := logsOf(config)
	if err != nil {
		return err
	}
	summary, err := mustgather.Collect(ctx, mustgather.Source{
		Objects: objects.NewClusterReader(c), Logs: logs, Namespace: f.namespace, Version: a.version, Now: a.now(), Since: begin,
	}, f.out)
	if err != nil {
		return err
	}
	if f.format == cli.JSON {
		return cli.WriteJSON(a.stdout, summary)
	}
	for _, m := range summary.Missing {
		cli.Printf(a.stderr, "missing: %s\n", m)
	}
	cli.Printf(a.stdout, "%s: %d objects, %d nodes, %d logs\n", f.out, summary.Objects, summary.Nodes, summary.Logs)
	return nil
}

// logsOf returns what reads logs through the API server. Of a file on a node, the kubelet sends the end alone: it
// serves ranges (net/http.FileServer). No redirect is followed: the API server passes on that of a kubelet
// (k8s.io/kubernetes pkg/registry/core/node/rest, ProxyREST), and client-go adds the token to each request, for
// whatever host.
func logsOf(config *rest.Config) (func(context.Context, string, map[string]string, int64) ([]byte, error), error) {
	transport, err := rest.TransportFor(config)
	var clients *kubernetes.Clientset
	if err == nil {
		direct := &http.Client{
			Transport: transport, Timeout: config.Timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		clients, err = kubernetes.NewForConfigAndClient(config, direct)
	}
	if err != nil {
		return nil, &gather.UnreachableError{Err: fmt.Errorf("connecting to the cluster: %w", err)}
	}
	return func(ctx context.Context, path string, query map[string]string, limit int64) (text []byte, err error) {
		r := clients.CoreV1().RESTClient().Get().AbsPath(path)
		for name, value := range query {
			r = r.Param(name, value)
		}
		if strings.Contains(path, "/proxy/logs/") {
			r = r.SetHeader("Range", fmt.Sprintf("bytes=-%d", limit))
		}
		stream, err := r.Stream(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading it through the API server: %w", err)
		}
		defer func() { err = errors.Join(err, stream.Close()) }()
		return io.ReadAll(io.LimitReader(stream, limit))
	}, nil
}
