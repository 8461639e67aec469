package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"wmco/internal/cli"
)

// TestAnInterruptedApplySaysWhatIsInTheMiddle: services have to stay healthy for seconds, so the run has not ended when its first action is seen.
func TestAnInterruptedApplySaysWhatIsInTheMiddle(t *testing.T) {
	o := newOverSSH(t, 1)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	stdout := &watchedOutput{want: `"event":"action"`, seen: interrupt}
	var stderr bytes.Buffer
	args := append([]string{"apply", "--identity", o.servers[0].KeyFile, "-o", "json"}, o.hosts()...)
	if status := runCommand(ctx, o.app(stdout, &stderr), o.line(args)); status != cli.ExitInterrupted {
		t.Errorf("status %d\n%s", status, &stderr)
	}
	if want := "interrupted; in the middle of a change, which goes on without this command: 1 of 1 host\n"; !strings.Contains(stderr.String(), want) {
		t.Errorf("%q is not printed\n%s", want, &stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	var last failureJSON
	must(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last))
	if last.Unfinished == nil || last.Unfinished.Total == 0 || !strings.HasPrefix(last.Error, "interrupted ") || !strings.Contains(last.Fix, "the earlier ones undo it") {
		t.Errorf("%s", lines[len(lines)-1])
	}
}
