package nodecli

import (
	"runtime"

	"github.com/spf13/cobra"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/cli"
)

// versionAnswer is the JSON of `wmco-node version`.
type versionAnswer struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Schema is the newest format of manifests that the program reads, Answers the format that it prints.
	Schema  int `json:"bundleSchema"`
	Answers int `json:"answerSchema"`
	// Digest is of the program's own file: whoever copied it can check that it is complete.
	Digest bundle.Digest `json:"digest"`
}

func versionCommand(p Program) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and the digest of its file",
		Long:  "Print version, formats and the digest of the program's own file as JSON." + cli.ExitHelp("0  done"),
		Args:  cli.Usage{}.Check,
		RunE: func(*cobra.Command, []string) error {
			digest, err := p.Digest()
			if err != nil {
				return err
			}
			return p.print(versionAnswer{
				Version: p.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
				Schema: bundle.Schema, Answers: protocol.Schema, Digest: digest,
			})
		},
	}
}
