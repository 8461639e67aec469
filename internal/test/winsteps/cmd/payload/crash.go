//go:build windows

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/windows/svc"

	"wmco/bundle"
)

// crashed is the service that crash ends.
const crashed = "windows_exporter"

// crashService ends a service without warning, while the node agent does not run: only the service control manager can
// restart it.
func crashService(ctx context.Context, m machine) error {
	if err := m.applyAndVerify(ctx, bundleFirst); err != nil {
		return err
	}
	if err := stopService(bundle.AgentService); err != nil {
		return err
	}
	if err := m.awaitState(ctx, bundle.AgentService, svc.Stopped); err != nil {
		return err
	}
	before, err := queryService(crashed)
	if err != nil {
		return err
	}
	if err := killProcess(before.ProcessId); err != nil {
		return err
	}
	if m.wine {
		m.cannot("recovery actions, so the service is restarted by wmco-node repair")
		if err := m.awaitState(ctx, crashed, svc.Stopped); err != nil {
			return err
		}
		if _, err := m.runAgent(ctx, "repair", "", 0); err != nil {
			return err
		}
	}
	if err := waitUntil(ctx, crashed+" runs again", 2*time.Minute, func() (bool, error) {
		now, err := queryService(crashed)
		return now.State == svc.Running && now.ProcessId != before.ProcessId, err
	}); err != nil {
		return err
	}
	m.say("%s, process %d, was ended and runs again", crashed, before.ProcessId)
	return m.applyAndVerify(ctx, bundleFirst)
}

const (
	// journal is there while a run has not finished.
	journal = `C:\ProgramData\wmco\journal.json`
	// kills is how many runs are ended at most before one was ended in its middle.
	kills = 20
)

// killRuns ends a run without warning in its middle, while the node agent does not run, and lets the next run resume
// it.
func killRuns(ctx context.Context, m machine) error {
	if err := m.applyAndVerify(ctx, bundleFirst); err != nil {
		return err
	}
	if err := stopService(bundle.AgentService); err != nil {
		return err
	}
	if err := m.awaitState(ctx, bundle.AgentService, svc.Stopped); err != nil {
		return err
	}
	for i := range kills {
		name := []string{bundleOther, bundleFirst}[i%2]
		if err := killInTheMiddle(ctx, name, time.Duration(i)*10*time.Millisecond); err != nil {
			return err
		}
		if _, err := os.Stat(journal); err == nil {
			m.say("run %d was ended in its middle", i+1)
			return m.applyAndVerify(ctx, name)
		}
	}
	return fmt.Errorf("none of %d runs was ended in its middle", kills)
}

// killInTheMiddle applies a bundle and ends the run some time after its journal is there.
func killInTheMiddle(ctx context.Context, bundle string, after time.Duration) error {
	file, err := os.Open(archiveOf(bundle))
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	cmd := exec.CommandContext(ctx, nodeAgent, "apply")
	cmd.Stdin = file
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case err := <-ended:
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				err = fmt.Errorf("wmco-node apply %s ended with status %d before it was ended", bundle, exit.ExitCode())
			}
			return err
		case <-tick.C:
		}
		if _, err := os.Stat(journal); err != nil {
			continue
		}
		tick.Stop()
		time.Sleep(after)
		_ = cmd.Process.Kill() // it may have ended
		<-ended                //nolint:errcheck // a killed process ends with an error
		return nil
	}
}

// kubeletLogs are where kube-log-runner writes what the kubelet prints, and maxLog is the size at which it begins
// another file, in bytes, with what it may write until it looks again.
const (
	kubeletLogs = `C:\var\log\kubelet`
	maxLog      = 4 << 20
)

// awaitRotation waits for rotated logs. The kubelet's stand-in prints 200 kB a second, and the bundle rotates at 1 MiB.
func awaitRotation(ctx context.Context, m machine) error {
	if err := m.applyAndVerify(ctx, bundleFirst); err != nil {
		return err
	}
	var rotated []string
	err := waitUntil(ctx, "kube-log-runner has rotated twice", 2*time.Minute, func() (bool, error) {
		var err error
		rotated, err = filepath.Glob(kubeletLogs + `\kubelet-2*.log`)
		return len(rotated) >= 2, err
	})
	if err != nil {
		return err
	}
	info, err := os.Stat(kubeletLogs + `\kubelet.log`)
	if err == nil && info.Size() > maxLog {
		err = fmt.Errorf("%s has %d bytes", info.Name(), info.Size())
	}
	m.say("rotated: %d files", len(rotated))
	return err
}
