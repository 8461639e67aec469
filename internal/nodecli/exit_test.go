package nodecli

import (
	"errors"
	"testing"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/cli"
)

func TestExitStatusOfARun(t *testing.T) {
	for name, tt := range map[string]struct {
		outcome protocol.Result
		err     error
		want    int
	}{
		"applied":                    {protocol.ResultApplied, nil, cli.ExitDone},
		"waits for a boot":           {protocol.ResultReboot, nil, cli.ExitPartial},
		"waits for a confirmation":   {protocol.ResultPartial, nil, cli.ExitPartial},
		"in part":                    {protocol.ResultPartial, &applier.PartialError{Err: errors.New("x")}, cli.ExitPartial},
		"a fault of the host":        {protocol.ResultPartial, &applier.FaultError{Err: errors.New("input/output error")}, cli.ExitPartial},
		"a file":                     {protocol.ResultPartial, &applier.FileError{}, cli.ExitPartial},
		"a service":                  {protocol.ResultPartial, &applier.ServiceError{Err: errors.New("x")}, cli.ExitPartial},
		"another run":                {protocol.ResultPartial, &applier.LockedError{}, cli.ExitPartial},
		"rolled back":                {protocol.ResultRolledBack, &applier.RolledBackError{Err: errors.New("x")}, cli.ExitRolledBack},
		"refused":                    {protocol.ResultRefused, &applier.RefusedError{}, cli.ExitUsage},
		"a manifest that is too new": {protocol.ResultRefused, &bundle.SchemaError{}, cli.ExitUsage},
	} {
		err := ended(applier.Outcome{Event: protocol.Event{Result: tt.outcome}}, tt.err)
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
