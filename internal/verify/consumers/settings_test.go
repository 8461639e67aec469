package consumers

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTheKubeletAgreesAboutRandomSettings: with each of about 10,000 settings, findings refuse what the kubelet ends with and nothing else. hack/minors does the same
// for all minor versions.
func TestTheKubeletAgreesAboutRandomSettings(t *testing.T) {
	dir := t.TempDir()
	// Another module: its go command must not see this one's.
	makeThem := exec.CommandContext(t.Context(), "go", "-C", filepath.Join("..", "..", ".."), "test", "-count=1", "-v", "-run", "^TestRandomSettingsOfTheKubelet$", "./render")
	makeThem.Env = append(os.Environ(), "WMCO_SETTINGS="+dir, "GOWORK=off")
	out, err := makeThem.CombinedOutput()
	if err != nil {
		t.Fatalf("making random settings: %v\n%s", err, out)
	}
	_, seed, _ := strings.Cut(string(out), "WMCO_SEED=")
	seed, _, _ = strings.Cut(seed, "\n")
	cases, err := os.ReadFile(filepath.Join(dir, kubeletMinor(t), "settings.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	// The kubelet's version, on which this field depends, is put into a program when it is linked, as hack/minors does.
	lines := slices.DeleteFunc(slices.Collect(bytes.Lines(cases)), func(line []byte) bool { return bytes.Contains(line, []byte("showHiddenMetricsForVersion")) })
	accepted, refused, differences := compareSettings(bytes.NewReader(bytes.Join(lines, nil)), func(conf []byte) error {
		kubelet, _ := Find("k/kubelet.conf")
		return kubelet.Check(t.Context(), conf, Options{})
	})
	for _, d := range differences {
		if d != nil {
			t.Error(d)
		}
	}
	t.Logf("WMCO_SEED=%s: %d accepted, %d refused", seed, accepted, refused)
	if accepted+refused < 9000 {
		t.Errorf("%d settings, want at least 9000", accepted+refused)
	}
}

// kubeletMinor is the minor version of the kubelet that this module links.
func kubeletMinor(t *testing.T) string {
	t.Helper()
	version, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatalf("finding the kubelet's version: %v", err)
	}
	return strings.Join(strings.SplitN(strings.TrimPrefix(string(version), "v"), ".", 3)[:2], ".")
}
