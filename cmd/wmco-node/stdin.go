package main

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/spf13/cobra"

	"wmco/bundle/archive"
	"wmco/internal/cli"
)

// textFlag is for callers behind a shell that treats stdin as text: PowerShell decodes what it passes to a program and encodes
// it again (learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_pipelines).
func textFlag(cmd *cobra.Command, text *bool) {
	cmd.Flags().BoolVar(text, "text", false, "stdin is base64 in lines (RFC 4648, padded), for shells that treat it as text")
}

// bundleIn reads the bundle on stdin, until the context ends.
func (a *app) bundleIn(ctx context.Context, text bool) (*archive.Reader, error) { //nolint:revive // the value of a flag
	in := cli.Reader(ctx, a.stdin)
	if text {
		in = base64.NewDecoder(base64.StdEncoding, in) // which skips line ends
	}
	r, err := archive.NewReader(in)
	if err != nil {
		return nil, &cli.ExitError{Status: cli.ExitUsage, Err: fmt.Errorf("reading the bundle on stdin: %w", err)}
	}
	return r, nil
}
