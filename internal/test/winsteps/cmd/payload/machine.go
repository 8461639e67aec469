//go:build windows

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"

	"wmco/bundle"
	"wmco/internal/test/winsteps/standin"
)

// The folder of the steps, and what hack/windows/payload puts there: programs, archives for `wmco-node apply`,
// published bundles, and certificates.
const (
	root         = `C:\wmco-steps`
	nodeAgent    = root + `\wmco-node.exe`
	certificates = root + `\certificates`
)

func archiveOf(bundle string) string   { return root + `\` + bundle + `.archive` }
func publishedOf(bundle string) string { return root + `\published-` + bundle }

// apiServer is the address of the API server in the bundle.
const apiServer = "127.0.0.1:6443"

// machine is this Windows.
type machine struct {
	node, step string
	wine       bool
}

func (m machine) say(format string, args ...any) {
	fmt.Printf("payload-%s: %s\n", m.step, fmt.Sprintf(format, args...))
}

// cannot prints in one line what a step does not do under Wine.
func (m machine) cannot(what string) { m.say("not under Wine: %s", what) }

// result is what a program printed, and its exit status.
type result struct {
	output string
	status int
}

// runProgram runs a program. Stdin is the path of a file, or empty.
func runProgram(ctx context.Context, stdin, program string, args ...string) (result, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if stdin != "" {
		file, err := os.Open(stdin)
		if err != nil {
			return result{}, err
		}
		defer file.Close() //nolint:errcheck // it was only read
		cmd.Stdin = file
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	if err != nil {
		return result{}, fmt.Errorf("running %s: %w", filepath.Base(program), err)
	}
	return result{out.String(), cmd.ProcessState.ExitCode()}, nil
}

// runAgent runs the node agent with a bundle, and fails unless it ends with the status. The last line that it prints is
// shown.
func (m machine) runAgent(ctx context.Context, command, bundle string, status int) (string, error) {
	stdin := ""
	if bundle != "" {
		stdin = archiveOf(bundle)
	}
	r, err := runProgram(ctx, stdin, nodeAgent, command, "-o", "text")
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimSpace(r.output), "\n")
	m.say("wmco-node %s %s: status %d, %s", command, bundle, r.status, strings.TrimSpace(lines[len(lines)-1]))
	if r.status != status {
		return "", fmt.Errorf("wmco-node %s ended with status %d, not %d:\n%s", command, r.status, status, tail(r.output))
	}
	return r.output, nil
}

// tail is the end of a text, of at most 4000 bytes.
func tail(text string) string { return text[max(0, len(text)-4000):] }

// applyAndVerify applies a bundle and checks the machine by it.
func (m machine) applyAndVerify(ctx context.Context, bundle string) error {
	if _, err := m.runAgent(ctx, "apply", bundle, 0); err != nil {
		return err
	}
	_, err := m.runAgent(ctx, "verify", bundle, 0)
	return err
}

// waitUntil waits for what holds at last.
func waitUntil(ctx context.Context, what string, within time.Duration, holds func() (bool, error)) error {
	var last error
	for deadline := time.Now().Add(within); ; time.Sleep(200 * time.Millisecond) {
		done, err := holds()
		switch last = err; {
		case err == nil && done:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case time.Now().After(deadline):
			return errors.Join(fmt.Errorf("not within %s: %s", within, what), last)
		}
	}
}

// serveAPI starts the API server of this machine's Node.
func (m machine) serveAPI(ctx context.Context) (*standin.APIServer, func() error, error) {
	s := &standin.APIServer{Node: m.node, Now: time.Now}
	stop, err := standin.Listen(ctx, apiServer, certificates, s)
	return s, stop, err
}

// withService opens a service.
func withService(name string, use func(*mgr.Service) error) (err error) {
	manager, err := mgr.Connect()
	if err != nil {
		return err
	}
	defer manager.Disconnect() //nolint:errcheck // nothing is lost
	s, err := manager.OpenService(name)
	if err != nil {
		return fmt.Errorf("service %s: %w", name, err)
	}
	defer s.Close() //nolint:errcheck // nothing is lost
	return use(s)
}

func queryService(name string) (state svc.Status, err error) {
	err = withService(name, func(s *mgr.Service) (err error) {
		state, err = s.Query()
		return err
	})
	return state, err
}

// awaitState waits until a service has a state.
func (m machine) awaitState(ctx context.Context, name string, want svc.State) error {
	return waitUntil(ctx, fmt.Sprintf("service %s has state %d", name, want), 2*time.Minute, func() (bool, error) {
		s, err := queryService(name)
		return s.State == want, err
	})
}

func startService(name string) error {
	return withService(name, func(s *mgr.Service) error { return s.Start() })
}

func stopService(name string) error {
	return withService(name, func(s *mgr.Service) error {
		_, err := s.Control(svc.Stop)
		return err
	})
}

// agentCommand returns the command line of the node agent's service.
func agentCommand() (text string, err error) {
	// mgr.Service.Config fails under Wine, which does not know all of its questions.
	err = withService(bundle.AgentService, func(s *mgr.Service) error {
		buffer := make([]byte, 8<<10) // the most that QueryServiceConfigW returns
		config := (*windows.QUERY_SERVICE_CONFIG)(ptr(buffer))
		var needed uint32
		if err := windows.QueryServiceConfig(s.Handle, config, uint32(len(buffer)), &needed); err != nil {
			return err
		}
		text = windows.UTF16PtrToString(config.BinaryPathName)
		return nil
	})
	return text, err
}

// killProcess ends a process without warning.
func killProcess(id uint32) error {
	process, err := os.FindProcess(int(id))
	if err != nil {
		return err
	}
	defer process.Release() //nolint:errcheck // nothing is lost
	return process.Kill()
}
