// Package testenv gives tests a real Kubernetes API server that serves the OpenShift kinds, on loopback.
//
//	TestMain: Main --> tests: Client, User, Load ... --first use--> etcd + kube-apiserver + definitions
//	            '----- after the last test: stopped and removed <---------------'
//
// `make testenv` builds the programs. The package never downloads any and never uses an existing cluster. No controller runs:
// nodes, machines and namespaces stay as they were written, and objects outlive their owners.
package testenv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Variable is the environment variable with the folder of kube-apiserver and etcd, by default bin/testenv of the module.
const Variable = "WMCO_TESTENV"

// The programs, and the module that the definitions come from.
const (
	etcd         = "etcd"
	apiServer    = "kube-apiserver"
	openshiftAPI = "github.com/openshift/api"
)

// patience is the limit for the start of a program, on a computer that is busy with other tests.
const patience = 2 * time.Minute

// Environment is one API server for the tests of a package, which run one after another. The zero value is ready to use: the
// first test that needs the server starts it.
type Environment struct {
	once     sync.Once
	server   *envtest.Environment
	folder   string
	lifeline *lifeline
	// missing is the program that does not exist.
	missing string
	err     error
}

// Main runs the tests of a package and stops the server, if one was started. It returns the exit status for TestMain.
func (e *Environment) Main(m *testing.M) int {
	status := m.Run()
	if err := e.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(status, 1)
	}
	return status
}

// Config returns the configuration of the administrator. It skips the test if a program is missing.
func (e *Environment) Config(t testing.TB) *rest.Config {
	t.Helper()
	e.once.Do(func() { e.err = e.findAndStart() })
	switch {
	case e.err != nil:
		t.Fatal(e.err)
	case e.missing != "":
		t.Skipf("no %s: make testenv", e.missing)
	}
	return e.server.Config
}

// Client returns a new client of the administrator. It has cached nothing, so that it sees the current kinds.
func (e *Environment) Client(t testing.TB) client.Client {
	t.Helper()
	return NewClient(t, e.Config(t))
}

// NewClient returns a client for the configuration.
func NewClient(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (e *Environment) findAndStart() error {
	modules, err := findModules()
	if err != nil {
		return err
	}
	programs := cmp.Or(os.Getenv(Variable), filepath.Join(modules.own, "bin", "testenv"))
	if e.missing = missing(programs); e.missing != "" {
		return nil
	}
	if err := e.start(programs, modules.openshift); err != nil {
		return fmt.Errorf("starting the API server: %w", err)
	}
	return nil
}

// missing returns the first program that is not in the folder.
func missing(folder string) string {
	for _, name := range []string{apiServer, etcd} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return name
		}
	}
	return ""
}

func (e *Environment) start(programs, openshift string) error {
	folders, err := newFolders()
	if err != nil {
		return err
	}
	e.folder = folders.root
	logs, err := os.Create(folders.log)
	if err != nil {
		return err
	}
	defer logs.Close() //nolint:errcheck // the programs have their own handle
	e.server = &envtest.Environment{
		UseExistingCluster:       new(false),
		ControlPlaneStartTimeout: patience,
		ControlPlaneStopTimeout:  patience,
		CRDInstallOptions:        envtest.CRDInstallOptions{Paths: definitions(openshift), ErrorIfPathMissing: true, MaxTime: patience},
	}
	e.server.ControlPlane.Etcd = &envtest.Etcd{Path: filepath.Join(programs, etcd), DataDir: folders.data, Err: logs}
	api := e.server.ControlPlane.GetAPIServer()
	api.Path, api.CertDir, api.Err = filepath.Join(programs, apiServer), folders.certificates, logs
	// As in a cluster: nodes are limited to what concerns them (kubernetes.io/docs/reference/access-authn-authz/node).
	api.Configure().Set("authorization-mode", "Node", "RBAC").Append("enable-admission-plugins", "NodeRestriction")
	if err := e.launch(); err != nil {
		err = fmt.Errorf("%w; the end of its log:\n%s", err, lastLines(folders.log))
		return errors.Join(err, e.stop())
	}
	return nil
}

// launch returns when the server serves every kind.
func (e *Environment) launch() (err error) {
	if _, err = e.server.Start(); err != nil {
		return err
	}
	if e.lifeline, err = newLifeline(e.folder); err != nil {
		return err
	}
	return e.await(context.Background(), e.server.CRDs, func(err error) bool { return err == nil })
}

// stop ends what was started. It does nothing if nothing was.
func (e *Environment) stop() error {
	if e.server == nil {
		return nil
	}
	err := e.server.Stop()
	return errors.Join(err, e.lifeline.release(), os.RemoveAll(e.folder))
}

// lastLines returns the end of a log, for an error.
func lastLines(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.SplitAfter(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "")
}

// folders are the paths that the programs write to.
type folders struct{ root, data, certificates, log string }

func newFolders() (folders, error) {
	root, err := os.MkdirTemp("", "wmco-testenv-")
	if err != nil {
		return folders{}, err
	}
	f := folders{root: root, data: filepath.Join(root, "etcd"), certificates: filepath.Join(root, "kube-apiserver"), log: filepath.Join(root, "log")}
	return f, errors.Join(os.Mkdir(f.data, 0o700), os.Mkdir(f.certificates, 0o700))
}

// modules are the folders of two modules.
type modules struct{ own, openshift string }

func findModules() (modules, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "wmco", openshiftAPI).Output()
	if err != nil {
		return modules{}, fmt.Errorf("finding the folders of modules: %w", err)
	}
	dirs := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	return modules{own: dirs[0], openshift: dirs[1]}, nil
}
