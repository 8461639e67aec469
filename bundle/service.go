package bundle

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

func checkService(s Service) error {
	if err := CheckServiceName(s.Name); err != nil {
		return err
	}
	if s.Start != StartAuto {
		return fmt.Errorf("start: %q is not %s", s.Start, StartAuto)
	}
	if err := checkArgv(s.Argv); err != nil {
		return err
	}
	if err := checkRecovery(s.Recovery); err != nil {
		return err
	}
	if err := checkProbe(s.Probe); err != nil {
		return err
	}
	for _, path := range s.Reads {
		if err := CheckPath(path); err != nil {
			return err
		}
	}
	for i, l := range s.Logs {
		if err := CheckPath(l.Path); err != nil {
			return err
		}
		if l.SizeBytes < 0 || l.Files < 0 || l.AgeSeconds < 0 {
			return fmt.Errorf("logs[%d]: a negative limit", i)
		}
	}
	return nil
}

func checkArgv(argv []string) error {
	if len(argv) == 0 {
		return fmt.Errorf("a service without a command")
	}
	if err := CheckPath(argv[0]); err != nil {
		return err
	}
	for i, a := range argv {
		if strings.Count(a, "%") > 1 {
			return fmt.Errorf("argument %q: Windows expands %%NAME%% in the command of a service, and there is no escape", a)
		}
		if strings.Contains(a, "\x00") {
			return fmt.Errorf("argv[%d]: %q holds NUL", i, a)
		}
	}
	return nil
}

// The longest times of a recovery: SC_ACTION has milliseconds and SERVICE_FAILURE_ACTIONS seconds in 32 bits, of which
// the highest value is INFINITE (learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_failure_actionsw).
const (
	maxRestartSeconds = (math.MaxUint32 - 1) / 1000
	maxResetSeconds   = math.MaxUint32 - 1
)

func checkRecovery(r Recovery) error {
	for i, n := range r.RestartAfterSeconds {
		if n < 0 || int64(n) > maxRestartSeconds {
			return fmt.Errorf("recovery.restartAfterSeconds[%d]: %d is not from 0 to %d", i, n, int64(maxRestartSeconds))
		}
	}
	if r.ResetSeconds < 0 || int64(r.ResetSeconds) > maxResetSeconds {
		return fmt.Errorf("recovery.resetSeconds: %d is not from 0 to %d", r.ResetSeconds, int64(maxResetSeconds))
	}
	return nil
}

func checkProbe(p Probe) error {
	if !slices.Contains([]ProbeKind{"", ProbeHTTP, ProbeTCP, ProbePipe, ProbeRunning}, p.Kind) { // none is ProbeRunning
		return fmt.Errorf("probe.kind: %q is unknown", p.Kind)
	}
	if p.DeadlineSeconds < 0 || p.SettleSeconds < 0 {
		return fmt.Errorf("a probe with a negative time")
	}
	return nil
}
