package prometheus

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	ours    = "../../../deploy/dashboard/dashboard.yaml"
	samples = "samples.txt"
)

// evaluate reads a dashboard and samples, and evaluates all panels.
func evaluate(t *testing.T, dashboard, data string) ([]Evaluated, error) {
	t.Helper()
	d, err := Read(dashboard)
	if err != nil {
		return nil, err
	}
	if len(d.Panels()) == 0 {
		return nil, errNoData
	}
	end := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	const shown, before = 3 * time.Hour, time.Hour // rates look back
	read, err := ReadSamples(data, end.Add(-shown-before))
	if err != nil {
		return nil, err
	}
	return Evaluate(t.Context(), d, read, end.Add(-shown), end)
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestEveryPanelHasData(t *testing.T) {
	panels, err := evaluate(t, ours, samples)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Read(ours)
	if err != nil {
		t.Fatal(err)
	}
	var titles, legends []string
	for _, p := range panels {
		titles = append(titles, p.Title)
		for _, l := range p.Lines {
			legends = append(legends, l.Name)
		}
	}
	for i, p := range d.Panels() {
		if titles[i] != p.Title {
			t.Errorf("panel %d is %q, want %q", i, titles[i], p.Title)
		}
	}
	for _, legend := range []string{"Updating", "restart apply", "median", "LoginRefused", "win-3"} {
		if !slices.Contains(legends, legend) {
			t.Errorf("no line is named %q: %q", legend, legends)
		}
	}
}

func TestAPanelWithoutDataIsAnError(t *testing.T) {
	text, err := os.ReadFile(samples)
	if err != nil {
		t.Fatal(err)
	}
	for old, panel := range map[string]string{
		"wmco_unjoined_hosts{": "Hosts that cannot join", `volume="C:"`: "System disk in use", `le="+Inf"`: "Time from the Machine to a joined node",
		"process_resident_memory_bytes{job=": "Memory of the operator",
	} {
		_, err := evaluate(t, ours, write(t, strings.ReplaceAll(string(text), old, strings.ReplaceAll(old, "=", "_else="))))
		if old == "wmco_unjoined_hosts{" {
			_, err = evaluate(t, ours, write(t, strings.ReplaceAll(string(text), old, "wmco_else{")))
		}
		if !errors.Is(err, errNoData) || !strings.Contains(err.Error(), panel) {
			t.Errorf("without %s: %v", old, err)
		}
	}
}

func TestWhatCannotBeEvaluatedIsAnError(t *testing.T) {
	text, err := os.ReadFile(ours)
	if err != nil {
		t.Fatal(err)
	}
	for old, to := range map[string]string{`"graph"`: `"table"`, `sum(wmco_nodes)`: `sum(wmco_nodes`, `"panels"`: `"none"`} {
		if _, err := evaluate(t, write(t, strings.ReplaceAll(string(text), old, to)), samples); err == nil {
			t.Errorf("%s instead of %s: no error", to, old)
		}
	}
	if _, err := evaluate(t, ours, write(t, "wmco_nodes{state=} 1x3")); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("%v", err)
	}
}
