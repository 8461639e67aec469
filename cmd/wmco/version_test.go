package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"wmco/internal/cli"
)

func TestVersionShowsTheOperatorOfTheCluster(t *testing.T) {
	api := newPatchedAPI(t)
	api.Objects[0].SetAnnotations(map[string]string{"windowsmachineconfig.openshift.io/desired-version": "0.2.0"})
	for line, want := range map[string]struct{ out, said string }{
		"version":          {"operator in the cluster      0.2.0\n", "skew: this wmco is 0.1.0, and the operator 0.2.0"},
		"version --client": {"", ""},
	} {
		var out, said bytes.Buffer
		status := run(t.Context(), app{stdin: strings.NewReader(""), stdout: &out, stderr: &said, now: time.Now, version: "0.1.0"}, strings.Fields(line))
		if status != cli.ExitDone || !strings.Contains(out.String(), want.out) || !strings.HasPrefix(said.String(), want.said) || (want.out == "") == strings.Contains(out.String(), "operator in the cluster") {
			t.Errorf("wmco %s: status %d\n%s%s", line, status, out.String(), said.String())
		}
	}
	// Without a cluster the program knows its own version nevertheless.
	t.Setenv("KUBECONFIG", "/does/not/exist")
	var out, said bytes.Buffer
	if status := run(t.Context(), app{stdout: &out, stderr: &said, now: time.Now, version: "0.1.0"}, []string{"version"}); status != cli.ExitDone || said.Len() > 0 {
		t.Errorf("status %d: %s", status, said.String())
	}
}

func TestSkew(t *testing.T) {
	for _, c := range []struct {
		operators []string
		want      string
	}{
		{nil, ""}, {[]string{"0.1.0"}, ""}, {[]string{"0.2.0"}, "skew: this wmco is 0.1.0"}, {[]string{"0.1.0", "0.2.0"}, "skew: Windows nodes name several versions"},
	} {
		if got := skew("0.1.0", c.operators); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%v: %q", c.operators, got)
		}
	}
}
