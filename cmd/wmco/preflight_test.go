package main

import (
	"errors"
	"io"
	"testing"

	"wmco/applier/remote"
	"wmco/internal/cli"
)

// TestAMachineThatGivesNoAnswerHasItsOwnStatus: the page of the first contact lists what each means.
func TestAMachineThatGivesNoAnswerHasItsOwnStatus(t *testing.T) {
	target := remote.Target{User: remote.DefaultUser, Address: "h:22"}
	for _, tt := range []struct {
		name string
		err  error
		want int
	}{
		{"it prints something else", &remote.AnswerError{Target: target, Command: "preflight", Head: "xxx", Err: errors.New("no JSON")}, cli.ExitPartial},
		{"it is off", errors.New("connecting: refused"), cli.ExitUnreachable},
	} {
		for _, format := range []cli.Format{cli.Text, cli.JSON} {
			err := printPreflight(app{stdout: io.Discard, stderr: io.Discard}, format, preflightAnswers{targets: []remote.Target{target}, errs: []error{tt.err}})
			var exit *cli.ExitError
			if !errors.As(err, &exit) || exit.Status != tt.want {
				t.Errorf("%s, as %s: %v, want status %d", tt.name, format, err, tt.want)
			}
		}
	}
}
