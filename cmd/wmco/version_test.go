package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"wmco/internal/cli"
	"wmco/payload"
)

func TestVersionShowsTheOperatorOfTheCluster(t *testing.T) {
	api := newPatchedAPI(t)
	api.Objects[0].SetAnnotations(map[string]string{"windowsmachineconfig.openshift.io/desired-version": "0.2.0"})
	for line, want := range map[string]struct{ out, errOut string }{
		"version":          {"operator in the cluster      0.2.0\n", "skew: this wmco is 0.1.0, and the operator 0.2.0"},
		"version --client": {"", ""},
	} {
		var out, errOut bytes.Buffer
		status := runCommand(t.Context(), app{stdin: strings.NewReader(""), stdout: &out, stderr: &errOut, now: time.Now, version: "0.1.0"}, strings.Fields(line))
		if status != cli.ExitDone || !strings.Contains(out.String(), want.out) || !strings.HasPrefix(errOut.String(), want.errOut) || (want.out == "") == strings.Contains(out.String(), "operator in the cluster") {
			t.Errorf("wmco %s: status %d\n%s%s", line, status, out.String(), errOut.String())
		}
	}
	// Without a cluster the program knows its own version nevertheless.
	t.Setenv("KUBECONFIG", "/does/not/exist")
	var out, errOut bytes.Buffer
	if status := runCommand(t.Context(), app{stdout: &out, stderr: &errOut, now: time.Now, version: "0.1.0"}, []string{"version"}); status != cli.ExitDone || errOut.Len() > 0 {
		t.Errorf("status %d: %s", status, errOut.String())
	}
}

// TestVersionShowsTheKubeletOfTheCluster: the clusters of this release, with the one that answers. One without a kubelet is reported.
func TestVersionShowsTheKubeletOfTheCluster(t *testing.T) {
	for _, tt := range []struct{ answer, kubernetes, cluster, errOut string }{
		{`{"gitVersion":"v1.32.9+abcdef0"}`, "v1.32.9+abcdef0", "4.19                       kubelet and kube-proxy v1.32.13 (this cluster)\n", ""},
		{`{"gitVersion":"v1.36.3","emulationMajor":"1","emulationMinor":"35"}`, "v1.35.0+emulated-by-v1.36.3", "4.22                       kubelet and kube-proxy v1.35.8 (this cluster)\n", ""},
		{`{"gitVersion":"v1.30.4"}`, "v1.30.4", "", "skew: this release has no kubelet for Kubernetes v1.30.4 of the cluster: it serves OpenShift and OKD 4.18 to 5.1"},
	} {
		api := newPatchedAPI(t)
		api.version = tt.answer
		var out, errOut bytes.Buffer
		status := runCommand(t.Context(), app{stdout: &out, stderr: &errOut, now: time.Now, version: "0.1.0"}, []string{"version"})
		if status != cli.ExitDone || !strings.Contains(out.String(), "Kubernetes in the cluster    "+tt.kubernetes+"\n") || !strings.Contains(out.String(), tt.cluster) || !strings.HasPrefix(errOut.String(), tt.errOut) || (tt.errOut == "") != (errOut.Len() == 0) {
			t.Errorf("%s: status %d\n%s%s", tt.answer, status, out.String(), errOut.String())
		}
		if n := strings.Count(out.String(), "(this cluster)"); (n == 1) != (tt.cluster != "") || strings.Count(out.String(), "kubelet and kube-proxy v1.") != len(payload.Releases()) {
			t.Errorf("%s\n%s", tt.answer, out.String())
		}
	}
}

func TestSkew(t *testing.T) {
	for _, c := range []struct {
		operators []string
		want      string
	}{
		{nil, ""}, {[]string{"0.1.0"}, ""}, {[]string{"0.2.0"}, "skew: this wmco is 0.1.0"}, {[]string{"0.1.0", "0.2.0"}, "skew: Windows nodes name several versions"},
	} {
		if got := versionSkew("0.1.0", c.operators); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%v: %q", c.operators, got)
		}
	}
}
