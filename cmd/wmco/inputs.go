package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/desired"
	"wmco/internal/cli"
	"wmco/render"
	"wmco/report/inuse"
)

// inputFlags are shared by all commands that read inputs.
type inputFlags struct {
	clusterFlags
	from     []string
	facts    string
	payload  string
	node     string
	instance string
	all      bool
	strict   bool
	// keyless is true if the keys of an operator are not read: bundles bring none.
	keyless bool
	// refuseStops refuses inputs with which no pod could start.
	refuseStops bool
}

func (f *inputFlags) addFlags(cmd *cobra.Command) {
	f.addFrom(cmd)
	f.clusterFlags.addFlags(cmd)
	flags := cmd.Flags()
	addStrict(cmd, &f.strict, false)
	flags.StringVar(&f.facts, "facts", "", "file with the facts of hosts, as 'wmco-node facts' prints them (- for stdin)")
	flags.StringVar(
		&f.payload, "payload", "",
		"folder written by 'make payload', or oci:IMAGE for the executables of an operator image; they are verified and become part of the bundles",
	)
	flags.StringVar(&f.node, "node", "", "only the Windows node with this name")
	flags.StringVar(&f.instance, "instance", "", "only the Windows host with this address, a node or not")
	flags.BoolVar(&f.all, "all", false, "all Windows hosts in the inputs, or all of --host (the default)")
}

// addStrict adds --strict.
func addStrict(cmd *cobra.Command, strict *bool, standard bool) {
	cmd.Flags().BoolVar(strict, "strict", standard, "refuse documents and fields that have no effect, such as misspelt ones")
}

// addFrom adds the one flag of commands that choose no host.
func (f *inputFlags) addFrom(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(
		&f.from, "from", nil,
		"file, folder, must-gather, - (stdin) or cluster[:CONTEXT] (live cluster) with the objects; repeatable: later ones "+
			"override earlier ones. Write ./cluster for a folder called cluster",
	)
}

// readerOf returns the reader of the sources, and warns if a folder is not read because its name is that of the live
// cluster.
func (a app) readerOf(from []string, k gather.Kubeconfig) (r objects.Reader, complete bool, err error) {
	for _, source := range from {
		if _, ok := gather.IsCluster(source); !ok {
			continue
		}
		if _, err := os.Stat(source); err == nil {
			cli.Printf(a.stderr, "%s: this is the live cluster; the file or folder of this name is ./%s\n", source, source)
		}
	}
	return gather.OpenSources(from, a.stdin, k)
}

// needsObjects is the requirement of a command that reads inputs.
func needsObjects() cli.Need {
	return cli.Need{
		Flags: []string{"from"},
		Text:  "give the objects of a cluster with --from PATH, --from - or --from cluster[:CONTEXT]",
	}
}

// oneChoice are the flags that choose hosts, of which one is given.
func oneChoice() []string { return []string{"node", "instance", "all"} }

// hostChosen reports whether a host is named.
func (f *inputFlags) hostChosen() bool { return f.node != "" || f.instance != "" }

// readHosts reads the inputs that the flags name. Without a key, as in previews, secrets are masked.
func (f *inputFlags) readHosts(ctx context.Context, a app, key bundle.Key) (*desired.Hosts, error) {
	facts, err := f.readFacts(a)
	if err != nil {
		return nil, err
	}
	reader, complete, err := a.readerOf(f.from, f.kube)
	if err != nil {
		return nil, err
	}
	keys, unknown, unread := f.signingKeys(ctx)
	hosts, err := desired.ReadHosts(ctx, desired.Source{
		Objects: reader, Gather: gather.Options{
			Namespace: f.namespace, Complete: complete, Facts: facts,
		}, Payload: f.payload, Key: key, Strict: f.strict,
		SigningKeys: keys, RefuseStops: f.refuseStops,
	})
	if err = cmp.Or(err, unread); err != nil { // the first one names the objects that every command needs
		return nil, err
	}
	hosts.Findings = append(hosts.Findings, unknown...).Sorted()
	return hosts, nil
}

// signingKeys returns the public keys of the operator in PEM, or a finding why they are not known; neither
// where no source is a cluster.
func (f *inputFlags) signingKeys(ctx context.Context) ([]byte, bundle.Findings, error) {
	cluster, err := f.lastCluster()
	if err != nil || cluster == nil || f.keyless {
		return nil, nil, err
	}
	keys, unknown, err := inuse.LookUpKeys(ctx, cluster, f.namespace)
	if err != nil {
		return nil, nil, &gather.UnreachableError{Err: fmt.Errorf("reading the keys of the operator: %w", err)}
	}
	text, err := keys.Encode()
	return text, unknown, err
}

// lastCluster reads the last live cluster of the sources alone; nil where there is none. It asks nothing yet.
func (f *inputFlags) lastCluster() (objects.Reader, error) {
	for _, source := range slices.Backward(f.from) {
		if isLive(source) {
			reader, _, err := gather.OpenSources([]string{source}, nil, f.kube)
			return reader, err
		}
	}
	return nil, nil
}

func (f *inputFlags) readFacts(a app) ([]bundle.Facts, error) {
	switch {
	case f.facts == "":
		return nil, nil
	case f.facts != "-":
		return gather.FactsFile(f.facts)
	case slices.Contains(f.from, "-"):
		return nil, cli.UsageError("stdin can hold either the objects or the facts")
	}
	return bundle.DecodeFacts(a.stdin)
}

// chooseHosts returns the hosts that the flags name; the only host where they name none.
func (f *inputFlags) chooseHosts(hosts *desired.Hosts) ([]render.Node, error) {
	switch {
	case f.all:
		return hosts.SelectAll()
	case f.node != "":
		return hosts.SelectByNode(f.node)
	case f.instance != "":
		return hosts.SelectByAddress(f.instance)
	}
	nodes, err := hosts.SelectOnlyHost()
	if errors.Is(err, desired.ErrSeveral) {
		err = fmt.Errorf("%w: choose with --node, --instance or --all", err)
	}
	return nodes, err
}

// renderChosen renders the hosts that the flags name.
func (f *inputFlags) renderChosen(ctx context.Context, a app, key bundle.Key) ([]desired.Rendered, bundle.Findings, error) {
	hosts, err := f.readHosts(ctx, a, key)
	if err != nil {
		return nil, nil, err
	}
	nodes, err := f.chooseHosts(hosts)
	if err != nil {
		return nil, nil, err
	}
	return hosts.RenderBundles(nodes)
}

// refusedError are findings that refuse the inputs.
type refusedError struct {
	what     string
	findings bundle.Findings
}

func (e *refusedError) Error() string {
	return "the inputs are refused" + e.what + ": " + countText(e.findings)
}

// refusedInputs prints findings that refuse the inputs. What names the skipped action.
func refusedInputs(a app, what string, findings bundle.Findings) error {
	printFindings(a.stderr, palette{}, findings)
	return cli.UsageError("%w", &refusedError{what, findings})
}

func isLive(source string) bool {
	_, ok := gather.IsCluster(source)
	return ok
}
