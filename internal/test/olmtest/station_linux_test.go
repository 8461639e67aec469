package olmtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// olmNamespace is where OLM and its catalogs are.
const olmNamespace = "olm"

// The catalogs, and the releases in ours.
const (
	catalogExisting = "existing"
	catalogFirst    = "first"
	catalogSecond   = "second"
	first, second   = "0.1.0", "0.2.0"
)

// existingVersions are in the catalog of the existing operator.
var existingVersions = []string{"11.0.0", "11.9.9", "10.22.0", "10.18.0", "10.17.2", "12.0.0"}

// the station is started by the first test, and stopped after the last one.
var the station

// station is a control plane with OLM.
type station struct {
	client.Client
	config *rest.Config
	// programs is the folder of OLM's programs, folder that of everything that is written.
	programs, folder string
	// bundles are the folders of bundles by image.
	bundles map[string]string
	// wmco is the operator.
	wmco     string
	unpacked atomic.Int32
	began    time.Time

	once   sync.Once
	ends   []func()
	mu     sync.Mutex
	errors []error
}

func (s *station) report(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors = append(s.errors, err)
}

func (s *station) stop() {
	for i := len(s.ends) - 1; i >= 0; i-- {
		s.ends[i]()
	}
	if s.folder != "" {
		_ = os.RemoveAll(s.folder)
	}
}

// start returns when the catalogs are ready.
func (s *station) start(t *testing.T) {
	t.Helper()
	for _, name := range []string{"olm", "catalog", "opm", "oc"} {
		s.programs = filepath.Dir(program(t, name))
	}
	plane := server.ControlPlane(t)
	s.config, s.Client, s.began = plane.Config, server.Client(t), time.Now()
	var err error
	s.folder, err = os.MkdirTemp("", "wmco-olm-") //nolint:usetesting // for all tests
	must(t, err)
	s.wmco = filepath.Join(s.folder, "wmco")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", s.wmco, "wmco/cmd/wmco").CombinedOutput()
	if err != nil {
		t.Fatalf("building wmco: %v\n%s", err, out)
	}
	crds := envtest.CRDInstallOptions{Paths: []string{filepath.Join(s.programs, "crds"), filepath.Join("..", "..", "..", "hack", "install-check", "monitoring.yaml")}, ErrorIfPathMissing: true, MaxTime: time.Minute}
	_, err = envtest.InstallCRDs(s.config, crds)
	must(t, err)
	s.Client = server.Client(t) // which knows the kinds
	for _, name := range []string{olmNamespace, "openshift-monitoring", "openshift-machine-api", "openshift-config", "openshift-machine-config-operator"} {
		must(t, client.IgnoreAlreadyExists(s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	}
	must(t, s.createNode(t.Context(), linuxNode, "linux"))
	ctx, cancel := context.WithCancel(context.Background())
	s.ends = append(s.ends, cancel)
	go s.runPods(ctx)
	go s.runJobs(ctx)
	s.begin(t, "catalog-operator", exec.Command(filepath.Join(s.programs, "catalog"), "--namespace", olmNamespace, "--set-workload-user-id", "--interval", "10s"))
	s.begin(t, "olm-operator", exec.Command(filepath.Join(s.programs, "olm"), "--namespace", olmNamespace, "--interval", "10s"))
	s.bundles = map[string]string{}
	s.serve(t, catalogExisting, existingCatalog(t, s.folder, existingVersions...))
	for name, version := range map[string]string{catalogFirst: first, catalogSecond: second} {
		bundle, catalog := release(t, s.folder, version)
		s.bundles[bundleImageOf(version)] = bundle
		s.serve(t, name, catalog)
	}
}

// begin starts a program of OLM as the administrator.
func (s *station) begin(t *testing.T, name string, c *exec.Cmd) {
	t.Helper()
	c.Env = append(os.Environ(), "KUBECONFIG="+server.ControlPlane(t).Kubeconfig, "TMPDIR="+s.folder) // for the cache of opm
	s.ends = append(s.ends, begin(t, filepath.Join(s.folder, name+".log"), c))
}

// serve serves a catalog.
func (s *station) serve(t *testing.T, name, folder string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	must(t, l.Close())
	s.begin(t, "opm-"+name, exec.Command(filepath.Join(s.programs, "opm"), "serve", folder, "-p", fmt.Sprint(port), "--pprof-addr", "", "-t", filepath.Join(s.folder, name+".termination")))
	o := newObject("operators.coreos.com/v1alpha1", "CatalogSource", olmNamespace, name)
	o.Object["spec"] = object{"sourceType": "grpc", "address": fmt.Sprintf("127.0.0.1:%d", port), "displayName": "Test", "publisher": "Test"}
	must(t, s.Create(t.Context(), o))
}

func newObject(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}
