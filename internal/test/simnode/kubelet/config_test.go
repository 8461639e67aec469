package kubelet

import (
	"log/slog"
	"strings"
	"testing"

	"wmco/bundle"
)

const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupsPerQOS: false\nenforceNodeAllocatable: [none]\n"

// TestConfigurations are accepted and refused as by Kubernetes 1.36.
func TestConfigurations(t *testing.T) {
	const affinity = "cpuManagerPolicy: static\nfeatureGates: {WindowsCPUAndMemoryAffinity: true}\n"
	for text, refused := range map[string]string{
		head:                                                 "",
		head + "healthzPort: 0\n":                            "",
		head + "unknownField: 1\n":                           "", // only logged
		head + "maxPods: many\n":                             "decoding",
		"kind: KubeletConfiguration\n":                       "no kind",
		"not yaml: [":                                        "decoding",
		head + "maxPods: -1\n":                               "maxPods",
		head + "port: 70000\n":                               "port",
		head + "healthzPort: 70000\n":                        "healthzPort",
		head + "readOnlyPort: -1\n":                          "readOnlyPort",
		head + "topologyManagerPolicy: x\n":                  "topologyManagerPolicy",
		head + "hairpinMode: x\n":                            "hairpinMode",
		head + "containerLogMaxFiles: 1\n":                   "containerLogMaxFiles",
		head + "containerLogMaxSize: big\n":                  "containerLogMaxSize",
		head + "systemReserved: {cpu: lots}\n":               "reserved cpu",
		head + "evictionHard: {x.y: 1Gi}\n":                  "evictionHard",
		head + "singleProcessOOMKill: true\n":                "Windows",
		head + "imageGCLowThresholdPercent: 90\n":            "imageGC",
		head + affinity + "kubeReserved: {cpu: '4'}\n":       "",
		head + affinity + "kubeReserved: {cpu: '5'}\n":       "processors",
		head + "evictionHard: {nodefs.available: 120%}\n":    "evictionHard",
		head + "registerWithTaints: [{key: a, effect: x}]\n": "taint",
		strings.Replace(head, "[none]", "[pods]", 1):         "enforceNodeAllocatable",
	} {
		_, err := readConfig([]byte(text), slog.New(slog.DiscardHandler), 4)
		if refused == "" && err != nil || refused != "" && (err == nil || !strings.Contains(err.Error(), refused)) {
			t.Errorf("%q: %v, want %q", text, err, refused)
		}
	}
}

// TestCommandLines are read behind a wrapper; an unknown flag stops the kubelet.
func TestCommandLines(t *testing.T) {
	wrapped := []string{`C:\k\kube-log-runner.exe`, `-log-file=C:\var\log\kubelet\kubelet.log`, `C:\k\kubelet.exe`}
	f, err := parseFlags(append(wrapped, `--config=C:\k\kubelet.conf`, "--node-ip=10.0.0.5", "--node-labels=a=b,c=d", "--register-with-taints=x=y:NoExecute", "--windows-service", "--v=2"))
	if err != nil || f.config != `C:\k\kubelet.conf` || f.nodeIP != "10.0.0.5" || f.labels["c"] != "d" || f.certDir != `C:\var\lib\kubelet\pki` || len(f.taints) != 1 {
		t.Errorf("%+v, %v", f, err)
	}
	for _, argv := range [][]string{append(wrapped, "--cloud-config=x"), append(wrapped, "argument"), {`C:\k\other.exe`}, nil} {
		if f, err := parseFlags(argv); err == nil {
			t.Errorf("%q: %+v", argv, f)
		}
	}
	for text, ok := range map[string]bool{"a=b:NoSchedule": true, "a:NoExecute": true, "a=b": false, "a=b:Never": false, ":NoSchedule": false} {
		if _, err := parseTaint(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestNamesOfNodes(t *testing.T) {
	for _, c := range []struct{ override, host, want string }{{"", "WIN-A", "win-a"}, {" Node.Example ", "x", "node.example"}, {"", " ", ""}} {
		if got := nodeName(c.override, c.host); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if image := nodeInfo(bundle.Facts{OSBuild: "10.0.26100"}, "v1.36.3").OSImage; image != "Windows Server 2025 Datacenter" {
		t.Error(image)
	}
}
