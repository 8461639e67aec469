package olmtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"wmco/internal/test/network"
	"wmco/internal/test/testenv"
	"wmco/internal/test/testenv/controlplane"
)

const (
	// programsVariable is the folder of olm, catalog, opm and oc, and of OLM's definitions.
	programsVariable = "WMCO_OLM"
	// aloneVariable is set in the process that has a network of its own.
	aloneVariable = "WMCO_OLM_NETWORK"
)

// The node of the tests sends no heartbeat.
var server = testenv.Environment{Options: controlplane.Options{Controllers: true, Loopback: true, NodeGrace: time.Hour}}

var must = testenv.Must

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	switch {
	case os.Getenv(programsVariable) == "": // every test is skipped
		return m.Run()
	case os.Getenv(aloneVariable) != "":
		if err := network.EnableAdapter("lo"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		server.BeforeStop = func(*controlplane.ControlPlane) error {
			the.stop()
			return nil
		}
		return server.Main(m)
	}
	status, err := network.RunAlone(aloneVariable)
	if errors.Is(err, fs.ErrPermission) {
		fmt.Fprintln(os.Stderr, "skipped: the tests of OLM need a network of their own, which root can make")
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

// program returns the path of a program of the tests. Without it, the test is skipped.
func program(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(os.Getenv(programsVariable), name)
	if _, err := os.Stat(path); os.Getenv(programsVariable) == "" || err != nil {
		t.Skipf("no %s: make test-olm", name)
	}
	return path
}

// begin starts a program that ends with this process, or when the returned function is called. What it prints is in a file.
func begin(t *testing.T, logs string, c *exec.Cmd) (end func()) {
	t.Helper()
	file, err := os.Create(logs)
	must(t, err)
	c.Stdout, c.Stderr = file, file
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	must(t, c.Start())
	return func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		time.AfterFunc(10*time.Second, func() { _ = c.Process.Kill() })
		_ = c.Wait()
		_ = file.Close()
	}
}

// patience is the limit for one thing to happen: only a hang reaches it.
const patience = 10 * time.Minute

// await waits until done returns true, for as long as OLM may take on a computer that is busy.
func (w *world) await(what string, done func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		if done() {
			w.t.Logf("%5.1fs %s", time.Since(the.began).Seconds(), what)
			return
		}
		if time.Now().After(end) {
			w.explain()
			w.t.Fatalf("waiting for %s: it does not happen", what)
		}
	}
}
