package winnode

import (
	"testing"

	"wmco/bundle"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/test/winnode/stub"
)

// Paths of the node of these tests.
const (
	pathContainerd = `C:\k\containerd\containerd.exe`
	pathKubelet    = `C:\k\kubelet.exe`
	pathRunner     = `C:\k\kube-log-runner.exe`
	pathExporter   = `C:\k\windows_exporter.exe`
	pathCSIProxy   = `C:\k\csi-proxy.exe`
	pathConfig     = `C:\k\kubelet.conf`
	pathMirror     = `C:\k\containerd\registries\a.io\hosts.toml`
)

// badConfig in the configuration keeps the kubelet from starting.
const badConfig = "maxPods: many"

// The pipes and addresses that stand-ins serve.
const (
	pipeContainerd = `\\.\pipe\containerd-containerd`
	pipeCSIProxy   = `\\.\pipe\csi-proxy-filesystem-v1`
	addressKubelet = "127.0.0.1:10248"
	addressMetrics = "127.0.0.1:9182"
)

// newNode returns a node with stand-ins for its services, and everything that Wine supports.
func newNode(t *testing.T) bundletest.Node {
	t.Helper()
	n := bundletest.New()
	n.Routes = nil                     // Wine cannot change them
	n.Files[logsKubelet+`\.keep`] = "" // kube-log-runner makes no folder
	n.CAs = []string{authority(t, "first"), authority(t, "second")}
	n.Programs = map[string]string{
		pathContainerd: stand(t, stub.Behaviour{Pipes: []string{pipeContainerd}, Config: `C:\k\containerd\containerd_conf.toml`}),
		pathKubelet:    kubelet(t, "v1"),
		pathRunner:     string(build(t).runner),
		pathExporter:   stand(t, stub.Behaviour{TCP: []string{addressMetrics}}),
		pathCSIProxy:   stand(t, stub.Behaviour{Pipes: []string{pipeCSIProxy}}),
	}
	wrapped := []string{pathRunner, `-log-file=` + logsKubelet + `\kubelet.log`, pathKubelet, "--config", pathConfig, "--label=a b", `--quoted="x"`}
	n.Services = []bundle.Service{
		service("containerd", bundle.ProbePipe, pipeContainerd, []string{pathContainerd, "--run-service"}, pathContainerd, `C:\k\containerd\containerd_conf.toml`),
		service("kubelet", bundle.ProbeHTTP, "http://"+addressKubelet+"/healthz", wrapped, pathConfig, pathKubelet, pathRunner),
		service("windows_exporter", bundle.ProbeTCP, addressMetrics, []string{pathExporter}, pathExporter),
		service("csi-proxy", bundle.ProbePipe, pipeCSIProxy, []string{pathCSIProxy}, pathCSIProxy),
	}
	n.Services[1].Dependencies = []string{"containerd"}
	return n
}

func service(name string, kind bundle.ProbeKind, target string, argv []string, reads ...string) bundle.Service {
	s := bundletest.Service(name, argv, nil, reads...)
	s.Probe = bundle.Probe{Kind: kind, Target: target, DeadlineSeconds: 60, SettleSeconds: 1}
	return s
}

// kubelet returns a stand-in for a version of the kubelet.
func kubelet(t *testing.T, version string) string {
	t.Helper()
	return kubeletAt(t, addressKubelet, version)
}

func kubeletAt(t *testing.T, address, version string) string {
	t.Helper()
	return stand(t, stub.Behaviour{Version: version, HTTP: []string{address}, Config: pathConfig, Bad: badConfig})
}
