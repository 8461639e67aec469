package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
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
				"0  done; see missing.txt for what could not be collected", "2  invalid usage, or a folder that cannot be written",
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

// logsOf returns what reads logs through the API server, which passes on what a kubelet answers as it is. So nothing of an
// answer is followed but its text: client-go would wait as long as Retry-After says, read the text of an error to its
// end, print warnings, and add the token to a request for whatever host a redirect names. Of a file on a node, the
// kubelet sends the end alone: it serves ranges (net/http.FileServer).
func logsOf(config *rest.Config) (func(context.Context, string, map[string]string, int64) ([]byte, error), error) {
	base, _, errURL := rest.DefaultServerUrlFor(config)
	transport, err := rest.TransportFor(config)
	if err = errors.Join(errURL, err); err != nil {
		return nil, &gather.UnreachableError{Err: fmt.Errorf("connecting to the cluster: %w", err)}
	}
	direct := &http.Client{
		Transport: transport, Timeout: config.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context, path string, query map[string]string, limit int64) (text []byte, err error) {
		values := url.Values{}
		for name, value := range query {
			values.Set(name, value)
		}
		from := base.JoinPath(path)
		from.RawQuery = values.Encode()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
		if err != nil {
			return nil, fmt.Errorf("reading it through the API server: %w", err)
		}
		if strings.Contains(path, "/proxy/logs/") {
			r.Header.Set("Range", fmt.Sprintf("bytes=-%d", limit))
		}
		response, err := direct.Do(r)
		if err != nil {
			return nil, fmt.Errorf("reading it through the API server: %w", err)
		}
		defer func() { err = errors.Join(err, response.Body.Close()) }()
		if response.StatusCode/100 != 2 {
			return nil, fmt.Errorf("reading it through the API server: %s", refusal(response))
		}
		return io.ReadAll(io.LimitReader(response.Body, limit))
	}, nil
}

// mostRefusal is how much of what an answer that is no success says is shown, in bytes.
const mostRefusal = 500

// refusal returns what an answer that is no success says, bounded.
func refusal(response *http.Response) string {
	text, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	var status metav1.Status
	if json.Unmarshal(text, &status) != nil || status.Message == "" {
		status.Message = string(text)
	}
	code := http.StatusText(response.StatusCode)
	return bundle.BoundedText(fmt.Sprintf("%d %s: %s", response.StatusCode, code, status.Message), mostRefusal)
}
