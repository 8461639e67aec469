package main

import (
	"errors"
	"testing"

	"wmco/applier"
	"wmco/bundle"
	"wmco/internal/cli"
)

func TestExitStatusOfARun(t *testing.T) {
	for name, tt := range map[string]struct {
		outcome applier.Result
		err     error
		want    int
	}{
		"applied":                    {applier.ResultApplied, nil, cli.ExitDone},
		"waits for a boot":           {applier.ResultReboot, nil, cli.ExitPartial},
		"waits for a confirmation":   {applier.ResultPartial, nil, cli.ExitPartial},
		"in part":                    {applier.ResultPartial, &applier.PartialError{Err: errors.New("x")}, cli.ExitPartial},
		"a fault of the host":        {applier.ResultPartial, &applier.FaultError{Err: errors.New("input/output error")}, cli.ExitPartial},
		"a file":                     {applier.ResultPartial, &applier.FileError{}, cli.ExitPartial},
		"a service":                  {applier.ResultPartial, &applier.ServiceError{Err: errors.New("x")}, cli.ExitPartial},
		"another run":                {applier.ResultPartial, &applier.LockedError{}, cli.ExitPartial},
		"rolled back":                {applier.ResultRolledBack, &applier.RolledBackError{Err: errors.New("x")}, cli.ExitRolledBack},
		"refused":                    {applier.ResultRefused, &applier.RefusedError{}, cli.ExitUsage},
		"a manifest that is too new": {applier.ResultRefused, &bundle.SchemaError{}, cli.ExitUsage},
	} {
		err := ended(applier.Outcome{Event: applier.Event{Result: tt.outcome}}, tt.err)
		got := cli.ExitDone
		var exit *cli.ExitError
		switch {
		case errors.As(err, &exit):
			got = exit.Status
		case err != nil:
			got = exitStatus(err)
		}
		if got != tt.want {
			t.Errorf("%s: status %d, want %d", name, got, tt.want)
		}
	}
}
