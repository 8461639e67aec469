package main

import (
	"cmp"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"wmco/bundle"
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
	Components map[string]string `json:"components"`
}

func versionCommand(a app) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of wmco and of the programs that it ships",
		Long:  "Print the version of wmco, of the bundle format, and of the programs that it installs on nodes." + cli.ExitHelp("0  done", "2  usage"),
		Args:  cli.Usage{}.Check,
		RunE: func(*cobra.Command, []string) error {
			answer := versionAnswer{Version: a.version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Schema: bundle.Schema, Components: map[string]string{}}
			for _, v := range payload.ClusterVersions() {
				answer.Clusters = append(answer.Clusters, v.Cluster)
			}
			for _, e := range payload.Table() {
				answer.Components[e.Name] = cmp.Or(e.Version, a.version)
			}
			if f == cli.JSON {
				return cli.WriteJSON(a.stdout, answer)
			}
			cli.Printf(a.stdout, "%s\n", versionLine(a))
			cli.Printf(a.stdout, "  %-28s %s\n", "clusters", clusterRange())
			for _, e := range payload.Table() {
				cli.Printf(a.stdout, "  %-28s %s\n", e.Name, answer.Components[e.Name])
			}
			return nil
		},
	}
	cli.AddFormat(cmd, &f, cli.Text, cli.JSON)
	return cmd
}

// clusterRange says which clusters this release serves.
func clusterRange() string {
	all := payload.ClusterVersions()
	first, last := all[0], all[len(all)-1]
	return fmt.Sprintf("OpenShift and OKD %s to %s (Kubernetes %s to %s)", first.Cluster, last.Cluster, first.Kubernetes, last.Kubernetes)
}

// versionLine is the answer of wmco --version.
func versionLine(a app) string {
	return fmt.Sprintf("wmco %s (%s, %s/%s), bundle schema %d", a.version, runtime.Version(), runtime.GOOS, runtime.GOARCH, bundle.Schema)
}
