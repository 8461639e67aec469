package fleettest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/nodestate"
)

// checkGather collects the cluster, reads the folder back, and looks for the values of every Secret that the cluster has. The machines
// have no kubelet to ask for logs: the folder notes that.
func (f *fleet) checkGather(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "must-gather")
	f.runs(t, "gather", "--out", dir)
	updated := 0
	table := f.runs(t, "status", "--from", dir)
	for line := range strings.Lines(table) {
		if columns := strings.Fields(line); len(columns) > 1 && columns[1] == string(nodestate.Updated) {
			updated++
		}
	}
	if updated != size {
		t.Errorf("%s", table)
	}
	f.runs(t, "render", "--from", dir, "--all")
	var secrets corev1.SecretList
	must(t, f.List(t.Context(), &secrets))
	var all strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	}))
	for _, s := range secrets.Items {
		for key, value := range s.Data {
			isPublic := strings.HasSuffix(key, ".crt") || key == corev1.ServiceAccountNamespaceKey || len(value) < 16
			if !isPublic && strings.Contains(all.String(), string(value)) {
				t.Errorf("the folder holds %s of Secret %s", key, client.ObjectKeyFromObject(&s))
			}
		}
	}
	missing, err := os.ReadFile(filepath.Join(dir, "missing.txt"))
	must(t, err)
	for _, m := range f.machines {
		for _, name := range []string{"desired.json", "applied.json", "plan.json", "report.json"} {
			text, err := os.ReadFile(filepath.Join(dir, "nodes", m.name, name))
			if err != nil || strings.Contains(string(text), `"missing": "its Secrets`) {
				t.Errorf("%s of %s: %v\n%s", name, m.name, err, text)
			}
		}
		if !strings.Contains(string(missing), "nodes/"+m.name+"/logs/") {
			t.Errorf("missing.txt does not name the log of %s:\n%s", m.name, missing)
		}
	}
}

// runs runs the program as the administrator, and returns what it prints.
func (f *fleet) runs(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), programs.Command, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.plane.Kubeconfig, "XDG_CONFIG_HOME="+t.TempDir())
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}
