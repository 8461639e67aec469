package payloadbuild

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/internal/build/modules"
	"wmco/payload"
)

func TestReportListsMissingExecutablesWithReasons(t *testing.T) {
	o := testOptions(t)
	all, err := o.readRecipes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o.Only = []string{"cni", "kube-log-runner", payload.CloudManager}
	wanted, err := o.chooseRecipes(all)
	if err != nil {
		t.Fatal(err)
	}
	refused := fmt.Errorf("downloading: %w", &modules.RefusedError{Module: "a.io/b", Version: "v1.2.3", Reason: "403 Forbidden"})
	table := func(azure, cni string) string {
		return strings.Join([]string{
			"COMPONENT        VERSION  RESULT",
			"azure            v1.36.5  " + azure,
			"cni              v1.10.0  " + cni,
			"kube-log-runner  v0.37.2  built: kube-log-runner",
			"",
		}, "\n")
	}
	const azureBuilt, cniBuilt = "built: azure-cloud-node-manager", "built: host-local, win-bridge, win-overlay"
	for name, tt := range map[string]struct {
		failed    map[string]error
		table     string
		notServed bool
		err       string
	}{
		"nothing failed":         {nil, table(azureBuilt, cniBuilt), false, ""},
		"a module is not served": {map[string]error{payload.CloudManager: refused}, table("azure-cloud-node-manager not built: downloading: a.io/b@v1.2.3: 403 Forbidden", cniBuilt), true, ErrNotServed.Error()},
		"one is not served, one does not compile": {
			map[string]error{payload.CloudManager: refused, payload.WinBridge: errors.New("exit status 1\nx.go:1: syntax error")},
			table("azure-cloud-node-manager not built: downloading: a.io/b@v1.2.3: 403 Forbidden", "built: host-local, win-overlay; win-bridge not built: exit status 1"), false, "building win-bridge: exit status 1\nx.go:1: syntax error",
		},
	} {
		var out bytes.Buffer
		o.Progress = &out
		err := o.reportResults(wanted, tt.failed)
		if diff := cmp.Diff(tt.table, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if errors.Is(err, ErrNotServed) != tt.notServed || err != nil && err.Error() != tt.err || err == nil && tt.err != "" {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
