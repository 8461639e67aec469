// Package controlplane starts a real control plane on loopback: etcd, a Kubernetes API server that serves the OpenShift
// kinds, and, if asked, the controller manager and the scheduler.
//
//	Start: snapshot, if there is one --> etcd --> kube-apiserver (Node, RBAC, NodeRestriction) --> definitions --> [kube-controller-manager, kube-scheduler]
//	                                                   |                                                '-- a snapshot for the next start
//	                                                   '-- one CA for clients, with which the controller manager also signs the certificates of kubelets
//
// `make testenv` builds the programs. The package never downloads any and never uses an existing cluster. Without the
// controller manager, nodes, machines and namespaces stay as they were written, and objects outlive their owners.
package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Variable is the environment variable with the folder of the programs, by default bin/testenv of the module.
const Variable = "WMCO_TESTENV"

// The programs, and the module that the definitions come from.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	openshiftAPI      = "github.com/openshift/api"
)

// Patience is the limit for the start of a program, on a computer that is busy with other tests.
const Patience = 2 * time.Minute

// Options are the programs to start.
type Options struct {
	// Controllers also starts the controller manager and the scheduler.
	Controllers bool
	// WithoutScheduler leaves the scheduler out, for clusters that start no Pods.
	WithoutScheduler bool
	// NodeGrace is how long a node may be silent before it counts as lost; zero is 40 s, as in a cluster.
	NodeGrace time.Duration
	// Audit makes the API server log every request, for Requests.
	Audit bool
	// Loopback is for a network that has nothing else: without it, the API server looks for the default route.
	Loopback bool
	// Folder is where data and logs are; it is removed at the end. Empty is a new temporary folder.
	Folder string
}

// MissingError means that a program was not built.
type MissingError struct{ Program string }

func (e *MissingError) Error() string { return fmt.Sprintf("no %s: make testenv", e.Program) }

// ControlPlane is running.
type ControlPlane struct {
	// Config is that of the administrator.
	Config *rest.Config
	// Kubeconfig is the same as a file.
	Kubeconfig string
	// CRDs are the definitions that are served.
	CRDs []*apiextensionsv1.CustomResourceDefinition

	server   *envtest.Environment
	programs string
	clients  *clientCA
	folders  folders
	logs     *os.File
	children []*child
	// grace is how long a node may be silent.
	grace time.Duration
	// scheduled reports whether there is a scheduler.
	scheduled bool
	lifeline  *lifeline
}

// Start returns when every kind is served. Its error is a *MissingError if a program was not built.
func Start(o Options) (*ControlPlane, error) {
	modules, err := findModules()
	if err != nil {
		return nil, err
	}
	programs := cmp.Or(os.Getenv(Variable), filepath.Join(modules.own, "bin", "testenv"))
	if name := missingPrograms(programs, o.programs()); name != "" {
		return nil, &MissingError{name}
	}
	files := definitions(modules.openshift)
	snapshot, err := newSnapshot(programs, files)
	if err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	c, err := newControlPlane(o, programs, files)
	if err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	if err := c.launchPrograms(o, snapshot); err != nil {
		err = fmt.Errorf("starting the control plane: %w; the end of its log:\n%s", err, lastLines(c.folders.log))
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// programs are those that are started.
func (o Options) programs() []string {
	all := []string{APIServer, Etcd}
	if o.Controllers {
		all = append(all, ControllerManager)
	}
	if o.Controllers && !o.WithoutScheduler {
		all = append(all, Scheduler)
	}
	return all
}

// missingPrograms returns the first program that is not in the folder.
func missingPrograms(folder string, programs []string) string {
	for _, name := range programs {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return name
		}
	}
	return ""
}

func newControlPlane(o Options, programs string, definitions []string) (*ControlPlane, error) {
	folders, err := newFolders(o.Folder)
	if err != nil {
		return nil, err
	}
	clients, err := newClientCA()
	if err != nil {
		return nil, err
	}
	logs, err := os.OpenFile(folders.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	server := &envtest.Environment{
		UseExistingCluster:       new(false),
		ControlPlaneStartTimeout: Patience,
		ControlPlaneStopTimeout:  Patience,
	}
	server.ControlPlane.Etcd = &envtest.Etcd{Path: filepath.Join(programs, Etcd), DataDir: folders.data, Err: logs}
	api := server.ControlPlane.GetAPIServer()
	api.Path, api.CertDir, api.Err = filepath.Join(programs, APIServer), folders.certificates, logs
	api.Authn = clients
	// As in a cluster: nodes are limited to what concerns them (kubernetes.io/docs/reference/access-authn-authz/node).
	api.Configure().Set("authorization-mode", "Node", "RBAC").Append("enable-admission-plugins", "NodeRestriction")
	if o.Loopback {
		api.Configure().Set("advertise-address", "127.0.0.1")
	}
	if o.Audit {
		if err := os.WriteFile(folders.auditPolicy, []byte(auditPolicy), 0o600); err != nil {
			return nil, err
		}
		api.Configure().Set("audit-policy-file", folders.auditPolicy).Set("audit-log-path", folders.audit).
			Set("audit-log-maxsize", "4096") // in MB: one file has all requests; after 100 it would begin another one
	}
	crds := envtest.CRDInstallOptions{Paths: definitions, ErrorIfPathMissing: true, MaxTime: Patience}
	if err := envtest.ReadCRDFiles(&crds); err != nil {
		return nil, err
	}
	return &ControlPlane{CRDs: crds.CRDs, server: server, programs: programs, clients: clients, folders: folders, logs: logs}, nil
}

func (c *ControlPlane) launchPrograms(o Options, snapshot snapshot) (err error) {
	if c.lifeline, err = newLifeline(c.folders.root); err != nil {
		return err
	}
	restored, err := snapshot.copyTo(c.folders.data)
	if err != nil {
		return err
	}
	if c.Config, err = c.server.Start(); err != nil {
		return err
	}
	// envtest makes it for webhooks that it does not install here. A program that is killed would leave it.
	if err := os.RemoveAll(c.server.WebhookInstallOptions.LocalServingCertDir); err != nil {
		return err
	}
	if !restored {
		if _, err := envtest.InstallCRDs(c.Config, envtest.CRDInstallOptions{CRDs: c.CRDs, MaxTime: Patience}); err != nil {
			return err
		}
	}
	if err := c.Await(context.Background(), c.CRDs, func(err error) bool { return err == nil }); err != nil {
		return err
	}
	if !restored {
		if err := snapshot.keep(c.Save); err != nil {
			return err
		}
	}
	c.Kubeconfig = c.folders.kubeconfig
	if err := os.WriteFile(c.Kubeconfig, c.server.KubeConfig, 0o600); err != nil {
		return err
	}
	if o.Controllers {
		c.grace, c.scheduled = cmp.Or(o.NodeGrace, nodeGrace), !o.WithoutScheduler
		return c.startControllers()
	}
	return nil
}

// AddUser returns the configuration of a user with a client certificate.
func (c *ControlPlane) AddUser(name string, groups ...string) (*rest.Config, error) {
	user, err := c.server.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: c.Config.QPS, Burst: c.Config.Burst})
	if err != nil {
		return nil, err
	}
	return user.Config(), nil
}

// ClientCA returns the certificate of the CA that signs the certificates of clients and of kubelets, in PEM.
func (c *ControlPlane) ClientCA() []byte { return c.clients.certificate }

// StopAPIServer kills the API server alone. Its clients, the controllers among them, lose it.
func (c *ControlPlane) StopAPIServer() error {
	if err := kill(APIServer); err != nil {
		return err
	}
	return c.server.ControlPlane.GetAPIServer().Stop()
}

// StartAPIServer starts the API server again, at the same address and with the same data.
func (c *ControlPlane) StartAPIServer() error {
	return c.server.ControlPlane.GetAPIServer().Start()
}

// APIServerProgram is the path of the program that was started last.
func (c *ControlPlane) APIServerProgram() string { return c.server.ControlPlane.GetAPIServer().Path }

// Version is which API server runs.
type Version struct {
	// Programs is the folder of its program, empty for that of the control plane.
	Programs string
	// Emulated is the older minor version that it behaves as, such as "1.35"; empty for its own (kube-apiserver
	// --emulated-version).
	Emulated string
}

// ExchangeAPIServer stops the API server and starts one of another version, at the same address and with the same data.
// Etcd, the controllers and the scheduler stay.
func (c *ControlPlane) ExchangeAPIServer(v Version) error {
	if err := c.StopAPIServer(); err != nil {
		return err
	}
	api := c.server.ControlPlane.GetAPIServer()
	api.Path = filepath.Join(cmp.Or(v.Programs, c.programs), APIServer)
	api.Configure().Disable("emulated-version")
	if v.Emulated != "" {
		api.Configure().Set("emulated-version", v.Emulated)
	}
	if err := c.StartAPIServer(); err != nil {
		return fmt.Errorf("starting another API server: %w; the end of its log:\n%s", err, lastLines(c.folders.log))
	}
	return nil
}

// Stop ends what was started, and removes its data.
func (c *ControlPlane) Stop() error {
	var errs []error
	for _, child := range c.children {
		errs = append(errs, child.stop())
	}
	errs = append(errs, c.server.Stop(), c.lifeline.release(), c.logs.Close(), os.RemoveAll(c.folders.root))
	return errors.Join(errs...)
}

// Log is the file with the messages of all programs.
func (c *ControlPlane) Log() string { return c.folders.log }

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
type folders struct{ root, data, certificates, kubeconfig, log, auditPolicy, audit string }

func newFolders(root string) (folders, error) {
	var err error
	if root == "" {
		root, err = os.MkdirTemp("", "wmco-testenv-")
	} else {
		err = os.MkdirAll(root, 0o700)
	}
	if err != nil {
		return folders{}, err
	}
	f := folders{
		root: root, data: filepath.Join(root, "etcd"), certificates: filepath.Join(root, "kube-apiserver"),
		kubeconfig: filepath.Join(root, "kubeconfig"), log: filepath.Join(root, "log"),
		auditPolicy: filepath.Join(root, "audit-policy.yaml"), audit: filepath.Join(root, "audit"),
	}
	return f, errors.Join(os.Mkdir(f.data, 0o700), os.Mkdir(f.certificates, 0o700))
}

// modules are the folders of two modules.
type modules struct{ own, openshift string }

func findModules() (modules, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "wmco", openshiftAPI).Output()
	if err != nil {
		return modules{}, fmt.Errorf("finding the folders of modules: %w", err)
	}
	dirs := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	return modules{own: dirs[0], openshift: dirs[1]}, nil
}
