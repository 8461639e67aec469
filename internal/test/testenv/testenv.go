// Package testenv gives tests a real control plane: an API server that serves the OpenShift kinds and, if asked, the
// controllers of Kubernetes, on loopback.
//
//	TestMain: Main --> tests: Client, User, Load ... --first use--> controlplane.Start
//	            '----- after the last test: stopped and removed <--------'
//
// `make testenv` builds the programs; without them, the tests are skipped.
package testenv

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/internal/test/testenv/controlplane"
)

// Environment is one control plane for the tests of a package, which run one after another. The zero value is an API
// server without controllers. The first test that needs it starts it.
type Environment struct {
	Options controlplane.Options
	// BeforeStop, where set, is called after the last test, while the control plane still runs: what it keeps can be
	// read, and clients can end.
	BeforeStop func(*controlplane.ControlPlane) error

	once  sync.Once
	plane *controlplane.ControlPlane
	// unfollow ends the watches of Eventually.
	unfollow func()
	err      error
}

// Main runs the tests of a package and stops the control plane, if one was started. It returns the exit status for
// TestMain.
func (e *Environment) Main(m *testing.M) int {
	status := m.Run()
	if err := e.stopServer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(status, 1)
	}
	return status
}

// ControlPlane returns the control plane. It skips the test if a program is missing, and on Windows.
func (e *Environment) ControlPlane(t testing.TB) *controlplane.ControlPlane {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("control planes are for other systems")
	}
	e.once.Do(func() {
		if e.plane, e.err = controlplane.Start(e.Options); e.err == nil {
			e.unfollow, e.err = changes.followCluster(e.plane.Config)
		}
	})
	var missing *controlplane.MissingError
	switch {
	case errors.As(e.err, &missing):
		t.Skip(missing.Error())
	case e.err != nil:
		t.Fatal(e.err)
	}
	return e.plane
}

// Config returns the configuration of the administrator. It skips the test if a program is missing.
func (e *Environment) Config(t testing.TB) *rest.Config {
	t.Helper()
	return e.ControlPlane(t).Config
}

// Client returns a new client of the administrator. It has cached nothing, so that it sees the current kinds.
func (e *Environment) Client(t testing.TB) client.Client {
	t.Helper()
	return NewClient(t, e.Config(t))
}

// NewClient returns a client for the configuration, which repeats reads as RetryReads does.
func NewClient(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(RetryReads(config), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// stopServer ends what was started. It does nothing if nothing was.
func (e *Environment) stopServer() error {
	if e.plane == nil {
		return nil
	}
	if e.unfollow != nil {
		e.unfollow()
	}
	var err error
	if e.BeforeStop != nil {
		err = e.BeforeStop(e.plane)
	}
	return errors.Join(err, e.plane.Stop())
}
