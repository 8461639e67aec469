package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/base/apiservers"
	"wmco/internal/cli"
	"wmco/payload"
)

// versionAnswer is the JSON of `wmco version`.
type versionAnswer struct {
	Version    string            `json:"version"`
	Go         string            `json:"go"`
	Platform   string            `json:"platform"`
	Schema     int               `json:"bundleSchema"`
	Clusters   []string          `json:"clusterVersions"`
	Kubelets   []kubeletVersion  `json:"kubelets"`
	Components map[string]string `json:"components"`
	// Server is absent with --client, and where there is no cluster.
	Server *serverVersion `json:"server,omitempty"`
}

// kubeletVersion is what nodes of one version of the cluster get.
type kubeletVersion struct {
	// Cluster is the minor version of OpenShift or OKD, Kubernetes that of its API server.
	Cluster    string `json:"cluster"`
	Kubernetes string `json:"kubernetes"`
	// Version is that of kubelet and kube-proxy.
	Version string `json:"version"`
}

// serverVersion is what runs in the cluster.
type serverVersion struct {
	// Kubernetes is the version of the API server, or the older one that it emulates.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Kubelet is what nodes of a cluster with this API server get; empty if this release has none for it.
	Kubelet string `json:"kubelet,omitempty"`
	// Operators are the versions of the operator that Windows nodes name, one but during an update.
	Operators []string `json:"operators,omitempty"`
	// Skew lists incompatible versions; empty if there are none.
	Skew string `json:"skew,omitempty"`
}

// versionWait is how long `wmco version` waits for each answer of a cluster.
const versionWait = 5 * time.Second

func versionCommand(a app) *cobra.Command {
	var f cli.Format
	var flags clusterFlags
	var clientOnly bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of wmco, of the programs that it ships, and of the operator in the cluster",
		Long: `Print the version of wmco, of the bundle format, and of the programs that it installs on nodes (kubelet and kube-proxy: those of the
cluster's minor version). With a cluster, also print the versions of its API server and of the operator, and any incompatibility.
A cluster that does not answer is not an error.` +
			cli.ExitHelp("0  done", "2  invalid usage"),
		Args: cli.Usage{}.Check,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer := versionOf(a)
			if !clientOnly {
				answer.Server = flags.server(cmd.Context(), a)
			}
			if f == cli.JSON {
				return cli.WriteJSON(a.stdout, answer)
			}
			printVersion(a, answer)
			return nil
		},
	}
	flags.addKubeconfig(cmd)
	cmd.Flags().BoolVar(&clientOnly, "client", false, "do not contact a cluster")
	cli.AddFormat(cmd, &f, cli.Text, cli.JSON)
	return cmd
}

// versionOf is the answer without a cluster.
func versionOf(a app) versionAnswer {
	answer := versionAnswer{
		Version: a.version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Schema: bundle.Schema, Components: map[string]string{},
	}
	for _, v := range payload.ClusterVersions() {
		r, _ := payload.ReleaseOf(v.Kubernetes)
		answer.Clusters = append(answer.Clusters, v.Cluster)
		answer.Kubelets = append(answer.Kubelets, kubeletVersion{v.Cluster, v.Kubernetes, r.Version})
	}
	for _, e := range payload.Table() {
		answer.Components[e.Name] = cmp.Or(e.Version, a.version)
	}
	return answer
}

func printVersion(a app, answer versionAnswer) {
	line := func(what, is string) { cli.Printf(a.stdout, "  %-28s %s\n", what, is) }
	cli.Printf(a.stdout, "%s\n", versionLine(a))
	var here string
	if s := answer.Server; s != nil {
		line("operator in the cluster", cmp.Or(strings.Join(s.Operators, ", "), "none that a Windows node names"))
		line("Kubernetes in the cluster", cmp.Or(s.Kubernetes, "unknown"))
		here = s.Kubelet
	}
	line("clusters", clusterRange())
	var clusters []string
	for i, k := range answer.Kubelets {
		clusters = append(clusters, k.Cluster)
		if i+1 < len(answer.Kubelets) && answer.Kubelets[i+1].Version == k.Version {
			continue
		}
		mark := ""
		if k.Version == here {
			mark = " (this cluster)"
		}
		line("  "+strings.Join(clusters, ", "), "kubelet and kube-proxy "+k.Version+mark)
		clusters = nil
	}
	for _, e := range payload.Table() {
		if e.Kubernetes == "" {
			line(e.Name, answer.Components[e.Name])
		}
	}
	if answer.Server != nil && answer.Server.Skew != "" {
		cli.Printf(a.stderr, "%s\n", answer.Server.Skew)
	}
}

// server asks the cluster; nil where there is none, or none that answers.
func (f *clusterFlags) server(ctx context.Context, a app) *serverVersion {
	config, err := f.kube.RESTConfig(versionWait)
	if err != nil {
		return nil
	}
	_, nodes, err := windowsNodes(ctx, config)
	if err != nil {
		cli.Printf(a.stderr, "the cluster's versions are not known: %v\n", err)
		return nil
	}
	s := &serverVersion{}
	for _, n := range nodes {
		if v := n.Annotations[published.DesiredVersionAnnotation]; v != "" && !slices.Contains(s.Operators, v) {
			s.Operators = append(s.Operators, v)
		}
	}
	slices.Sort(s.Operators)
	if d, err := discovery.NewDiscoveryClientForConfig(config); err == nil {
		if v, err := d.ServerVersion(); err == nil {
			s.Kubernetes = apiservers.EffectiveVersion(*v)
			s.Kubelet = kubeletFor(s.Kubernetes)
		}
	}
	s.Skew = cmp.Or(unserved(s.Kubernetes, s.Kubelet), versionSkew(a.version, s.Operators))
	return s
}

// kubeletFor returns the version of the kubelet for nodes of an API server, empty if this release has none.
func kubeletFor(server string) string {
	v, err := semver.NewVersion(server)
	if err != nil {
		return ""
	}
	r, _ := payload.ReleaseOf(fmt.Sprintf("%d.%d", v.Major(), v.Minor()))
	return r.Version
}

// unserved is the text for a cluster that this release has no kubelet for.
func unserved(server, kubelet string) string {
	if server == "" || kubelet != "" {
		return ""
	}
	return "skew: this release has no kubelet for Kubernetes " + server + " of the cluster: it serves " +
		clusterRange() + " (fix: use a release of wmco that serves it)"
}

// versionSkew lists versions that differ: those of nodes among each other, or that of this program and that of the
// operator.
func versionSkew(own string, operators []string) string {
	switch {
	case len(operators) > 1:
		return "skew: Windows nodes name several versions of the operator (" + strings.Join(operators, ", ") +
			"): an update is under way, or has stopped: wmco status shows which"
	case len(operators) == 1 && operators[0] != own:
		return "skew: this wmco is " + own + ", and the operator " + operators[0] +
			": what it previews can differ from what the operator does (fix: use the wmco of the operator's release)"
	}
	return ""
}

// clusterRange is the range of cluster versions that this release supports.
func clusterRange() string {
	all := payload.ClusterVersions()
	first, last := all[0], all[len(all)-1]
	return fmt.Sprintf(
		"OpenShift and OKD %s to %s (Kubernetes %s to %s)", first.Cluster, last.Cluster, first.Kubernetes,
		last.Kubernetes,
	)
}

// versionLine is the answer of wmco --version.
func versionLine(a app) string {
	return fmt.Sprintf(
		"wmco %s (%s, %s/%s), bundle schema %d", a.version, runtime.Version(), runtime.GOOS, runtime.GOARCH,
		bundle.Schema,
	)
}
