package nodecli

import (
	"context"
	"encoding/base64"
	"io"
	"time"

	"github.com/spf13/cobra"

	"wmco/applier/collect"
	"wmco/bundle"
	"wmco/internal/cli"
	"wmco/preflight"
)

func preflightCommand(p Program) *cobra.Command {
	var f preflightFlags
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Print what this host lacks before it can become a node",
		Long: `Check whether this host can become a node, and print each finding with its fix. Nothing on the host changes. With --stdin, the question of
wmco preflight is read from stdin: then names, API servers and registries of its cluster are asked too, the registries with its credentials
and without pulling anything.

With -o json, the answer of the host is printed, from which wmco makes the findings. It has no credentials.` +
			cli.ExitHelp(
				"0  no finding of severity error", "1  a finding of severity error",
				"2  invalid usage, or stdin cannot be read", "130  interrupted",
			),
		Args: cli.Usage{}.Check,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.preflight(cmd.Context(), f) },
	}
	cmd.Flags().BoolVar(&f.stdin, "stdin", false, "read the question of wmco preflight from stdin")
	textFlag(cmd, &f.text)
	cli.AddFormat(cmd, &f.format, cli.Text, cli.JSON)
	return cmd
}

// preflightFlags are those of preflight.
type preflightFlags struct {
	stdin, text bool
	format      cli.Format
}

func (p Program) preflight(ctx context.Context, f preflightFlags) error {
	q := preflight.Question{Schema: preflight.Schema}
	if f.stdin {
		var in io.Reader = newPatient(ctx, p.Stdin, stdinSilence)
		if f.text {
			in = base64.NewDecoder(base64.StdEncoding, in)
		}
		var err error
		if q, err = preflight.DecodeQuestion(in); err != nil {
			return cli.UsageError("%w", err)
		}
	}
	host, err := p.Host.Open()
	if err != nil {
		return cli.UsageError("%w", err)
	}
	answer := collect.Answer(ctx, q, host, p.Host.System(), collect.Options{Now: time.Now})
	if answer.Facts.Kubelet, err = kubeletOf(ctx, host); err != nil {
		answer.Unread = append(answer.Unread, "kubelet: "+err.Error())
	}
	findings := preflight.Findings(q, answer)
	if f.format == cli.JSON {
		err = p.print(answer)
	} else {
		p.printFindings(findings)
	}
	if err == nil && findings.Refused() {
		return cli.Exit(cli.ExitDiffers)
	}
	return err
}

func (p Program) printFindings(findings bundle.Findings) {
	for _, f := range findings {
		cli.Printf(p.Stdout, "%-7s  %s\n         %s\n         fix: %s\n", f.Severity, f.Reason, f.Message, f.Fix)
	}
	if len(findings) == 0 {
		cli.Printf(p.Stdout, "nothing is missing\n")
	}
}
