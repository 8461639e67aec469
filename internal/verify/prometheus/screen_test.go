package prometheus

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	ours    = "../../../deploy/dashboard/dashboard.yaml"
	samples = "samples.txt"
)

func screen(t *testing.T, dashboard, data string) ([]byte, error) {
	t.Helper()
	var out bytes.Buffer
	err := Screen(t.Context(), &out, dashboard, data)
	return out.Bytes(), err
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestEveryPanelIsDrawnTheSameTwice(t *testing.T) {
	first, err := screen(t, ours, samples)
	if err != nil {
		t.Fatal(err)
	}
	second, err := screen(t, ours, samples)
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the second picture is another one, %v", err)
	}
	texts := map[string]bool{}
	for d := xml.NewDecoder(bytes.NewReader(first)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok {
			texts[string(text)] = true
		}
	}
	d, err := Read(ours)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels() {
		if !texts[p.Title] {
			t.Errorf("the picture lacks %q", p.Title)
		}
	}
	for _, legend := range []string{"Updating", "restart apply", "median", "LoginRefused", "win-3", "54m", "11"} {
		if !texts[legend] {
			t.Errorf("the picture lacks the text %q", legend)
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
		_, err := screen(t, ours, write(t, strings.ReplaceAll(string(text), old, strings.ReplaceAll(old, "=", "_else="))))
		if old == "wmco_unjoined_hosts{" {
			_, err = screen(t, ours, write(t, strings.ReplaceAll(string(text), old, "wmco_else{")))
		}
		if !errors.Is(err, errNoData) || !strings.Contains(err.Error(), panel) {
			t.Errorf("without %s: %v", old, err)
		}
	}
}

func TestWhatCannotBeDrawnIsAnError(t *testing.T) {
	text, err := os.ReadFile(ours)
	if err != nil {
		t.Fatal(err)
	}
	for old, to := range map[string]string{`"graph"`: `"table"`, `sum(wmco_nodes)`: `sum(wmco_nodes`, `"panels"`: `"none"`} {
		if _, err := screen(t, write(t, strings.ReplaceAll(string(text), old, to)), samples); err == nil {
			t.Errorf("%s instead of %s: no error", to, old)
		}
	}
	if _, err := screen(t, ours, write(t, "wmco_nodes{state=} 1x3")); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("%v", err)
	}
}

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		value float64
		unit  string
		want  string
	}{
		{0.2, "percentunit", "20%"}, {60, "s", "1m"}, {7200, "s", "2h"}, {5430, "s", "1h30m30s"}, {1536, "bytes", "1.5 KiB"}, {2e6, "Bps", "2 MB/s"}, {0.01, "ops", "0.01/s"},
		{12, "none", "12"}, {5, "else", "5"},
	} {
		if got := show(c.value, c.unit); got != c.want {
			t.Errorf("%v %s: %q, want %q", c.value, c.unit, got, c.want)
		}
	}
	for _, unit := range []string{"percentunit", "s", "bytes", "Bps", "ops", "none"} {
		for most := 1e-4; most < 1e12; most *= 7 {
			if ticks := (units{unit}).Ticks(0, most); len(ticks) == 0 || len(ticks) > 8 {
				t.Errorf("%s to %v: %d marks", unit, most, len(ticks))
			}
		}
	}
}
