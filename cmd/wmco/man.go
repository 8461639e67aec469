package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"wmco/internal/cli"
)

// generateManCommand writes the manual pages of a release; the Makefile calls it. SOURCE_DATE_EPOCH, in seconds, is their date.
func generateManCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:    "generate-man DIR",
		Short:  "Write a manual page for each command",
		Hidden: true,
		Args:   cli.Usage{Args: []string{"DIR"}}.Check,
		RunE: func(_ *cobra.Command, args []string) error {
			root.DisableAutoGenTag = true
			err := errors.Join(os.MkdirAll(args[0], 0o755), doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: root.Name(), Manual: "Commands of wmco"}, args[0]))
			if err != nil {
				return fmt.Errorf("writing manual pages: %w", err)
			}
			return nil
		},
	}
}
