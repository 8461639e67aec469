package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/payload/store"
	"wmco/render"
	"wmco/render/reason"
)

// inputFlags are shared by all commands that read inputs.
type inputFlags struct {
	from      []string
	namespace string
	facts     string
	payload   string
	// key is that of secret digests, for commands that write to machines; none in previews.
	key      bundle.Key
	node     string
	instance string
	all      bool
}

// clusterSource is the --from value for a live cluster; a context may follow a colon.
const clusterSource = "cluster"

func (f *inputFlags) add(cmd *cobra.Command) {
	f.addFrom(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.namespace, "namespace", gather.OperatorNamespace, "namespace of the operator")
	flags.StringVar(&f.facts, "facts", "", "JSON of what machines say of themselves, as 'wmco-node facts' prints it (- for stdin)")
	flags.StringVar(&f.payload, "payload", "", "folder that make payload wrote: fills in digests and sizes of executables, after reading every byte of it")
	flags.StringVar(&f.node, "node", "", "the Windows node of this name")
	flags.StringVar(&f.instance, "instance", "", "the Windows machine at this address, a node or not")
	flags.BoolVar(&f.all, "all", false, "every Windows machine of the inputs (with --host: those that it names, as without)")
	cmd.MarkFlagsMutuallyExclusive("node", "instance", "all")
}

// addFrom adds the one flag of commands that choose no node.
func (f *inputFlags) addFrom(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.from, "from", nil, "where the objects are: a file or folder (a must-gather too), - for stdin, or cluster[:CONTEXT]; repeatable, a later one wins for an object of the same name")
}

// gather reads the inputs that the flags name.
func (f *inputFlags) gather(ctx context.Context, a app) (gather.Result, error) {
	if len(f.from) == 0 {
		return gather.Result{}, usageError("give the objects of a cluster with --from PATH, --from - or --from cluster[:CONTEXT]")
	}
	facts, err := f.readFacts(a)
	if err != nil {
		return gather.Result{}, err
	}
	reader, complete, err := f.reader(a)
	if err != nil {
		return gather.Result{}, err
	}
	result, err := gather.Gather(ctx, reader, gather.Options{Namespace: f.namespace, Complete: complete, Facts: facts})
	if err != nil {
		return result, &exitError{exitUnreachable, err}
	}
	return result, nil
}

// reader puts the sources of --from together. They are complete when one of them is a live cluster.
func (f *inputFlags) reader(a app) (objects.Reader, bool, error) {
	var layers []objects.Reader
	complete := false
	paths := []string{}
	flush := func() {
		if len(paths) > 0 {
			layers = append(layers, objects.Paths(paths, a.stdin))
			paths = nil
		}
	}
	for _, from := range f.from {
		name, contextName, _ := strings.Cut(from, ":")
		if name != clusterSource || pathExists(from) {
			paths = append(paths, from)
			continue
		}
		flush()
		c, err := clusterClient(contextName)
		if err != nil {
			return nil, false, err
		}
		layers = append(layers, objects.Cluster(c))
		complete = true
	}
	flush()
	return objects.Overlay(layers...), complete, nil
}

func pathExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// clusterClient connects as kubectl does: KUBECONFIG or ~/.kube/config, and the context if one is named.
func clusterClient(contextName string) (client.Reader, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{CurrentContext: contextName}).ClientConfig()
	if err != nil {
		return nil, usageError("reading the kubeconfig: %w", err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, &exitError{exitUnreachable, fmt.Errorf("connecting to the cluster: %w", err)}
	}
	return c, nil
}

func (f *inputFlags) readFacts(a app) ([]bundle.Facts, error) {
	switch f.facts {
	case "":
		return nil, nil
	case "-":
		if slices.Contains(f.from, "-") {
			return nil, usageError("stdin can hold either the objects or the facts")
		}
		return decodeFacts(bundle.DecodeFacts(a.stdin))
	}
	file, err := os.Open(f.facts)
	if err != nil {
		return nil, usageError("reading facts: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read from
	return decodeFacts(bundle.DecodeFacts(file))
}

// options are how bundles are rendered. A payload that is not what its list says is findings.
func (f *inputFlags) options(ctx context.Context) (render.Options, bundle.Findings, error) {
	if f.payload == "" {
		return render.Options{Key: f.key}, nil, nil
	}
	set, err := store.Read(ctx, f.payload)
	if refused := (*store.RefusedError)(nil); errors.As(err, &refused) {
		return render.Options{}, payloadFindings(refused), nil
	}
	if err != nil {
		return render.Options{}, nil, &exitError{exitUsage, err}
	}
	return render.Options{Payload: set, Key: f.key}, nil, nil
}

func payloadFindings(r *store.RefusedError) bundle.Findings {
	var all bundle.Findings
	for _, p := range r.Problems {
		all = append(all, bundle.Finding{Severity: bundle.SeverityError, Reason: reason.PayloadInvalid, Object: bundle.Ref{Source: p.Path}, Message: p.Message, Fix: p.Fix})
	}
	return all
}

func decodeFacts(facts []bundle.Facts, err error) ([]bundle.Facts, error) {
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return facts, nil
}

// selected returns the machines that the flags choose, and findings about a choice that fits none. Without a flag, the
// only machine there is.
func (f *inputFlags) selected(nodes []render.Node) ([]render.Node, error) {
	if f.all {
		if len(nodes) == 0 {
			return nil, usageError("the inputs have no Windows machine: no Node, no Machine with label machine.openshift.io/os-id=Windows and an address, no entry of windows-instances")
		}
		return nodes, nil
	}
	if f.node == "" && f.instance == "" {
		if len(nodes) == 1 {
			return nodes, nil
		}
		return nil, usageError("choose with --node, --instance or --all; the inputs have %s", names(nodes))
	}
	i := slices.IndexFunc(nodes, func(n render.Node) bool {
		if f.node != "" {
			return n.Name == f.node
		}
		return n.Address == f.instance || slices.Contains(n.Addresses, f.instance)
	})
	if i < 0 {
		return nil, usageError("no Windows machine is called %s; the inputs have %s", firstNonEmpty(f.node, f.instance), names(nodes))
	}
	return nodes[i : i+1], nil
}

func names(nodes []render.Node) string {
	if len(nodes) == 0 {
		return "none"
	}
	var list []string
	for _, n := range nodes {
		list = append(list, n.ID())
	}
	return strings.Join(list, ", ")
}

func firstNonEmpty(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
