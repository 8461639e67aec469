package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"wmco/bundle"
	"wmco/internal/cli"
	"wmco/render/review"
)

// failOn is --fail-on: the least severity of findings that end a command with status 2.
type failOn bundle.Severity

var errSeverity = errors.New("must be one of " + strings.Join(severityNames(), ", "))

func severityNames() []string {
	return []string{string(bundle.SeverityError), string(bundle.SeverityWarning), string(bundle.SeverityInfo)}
}

// String implements pflag.Value.
func (f *failOn) String() string { return string(*f) }

// Set implements pflag.Value.
func (f *failOn) Set(s string) error {
	switch severity := bundle.Severity(s); severity {
	case bundle.SeverityError, bundle.SeverityWarning, bundle.SeverityInfo:
		*f = failOn(severity)
		return nil
	}
	return errSeverity
}

// Type is what help calls the value.
func (f *failOn) Type() string { return "SEVERITY" }

// addFlag adds the flag to a command.
func (f *failOn) addFlag(cmd *cobra.Command, standard bundle.Severity) {
	*f = failOn(standard)
	cmd.Flags().Var(
		f, "fail-on",
		"end with status 2 at findings of this severity or higher: "+strings.Join(severityNames(), ", "),
	)
	_ = cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(severityNames(), cobra.ShellCompDirectiveNoFileComp))
}

// checkFindings refuses findings of the severity.
func (f *failOn) checkFindings(findings bundle.Findings) error {
	grave := findings.Open().AtLeast(bundle.Severity(*f))
	if len(grave) == 0 {
		return nil
	}
	return cli.UsageError("%s (--fail-on %s)", severityText(grave), *f)
}

// judgeChange refuses a change that adds findings of the severity.
func (f *failOn) judgeChange(r review.Review) error {
	why, goOn := r.Findings.Refusal()
	if why == "" {
		return nil
	}
	return cli.UsageError("%s (--fail-on %s); %s", why, *f, goOn)
}
