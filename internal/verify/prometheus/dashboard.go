package prometheus

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"sigs.k8s.io/yaml"
)

// Dashboard is what OpenShift's console shows of a ConfigMap with the label console.openshift.io/dashboard.
type Dashboard struct {
	Title string `json:"title"`
	Rows  []struct {
		Title  string  `json:"title"`
		Panels []Panel `json:"panels"`
	} `json:"rows"`
}

// Panel is a graph, or a single number.
type Panel struct {
	Title   string `json:"title"`
	Type    string `json:"type"`
	Targets []struct {
		Expr   string `json:"expr"`
		Legend string `json:"legendFormat"`
	} `json:"targets"`
}

// Types of panels.
const (
	typeGraph  = "graph"
	typeNumber = "singlestat"
)

var errUnknownPanel = errors.New("a panel is neither a graph nor a single number")

// Read returns the dashboard of a ConfigMap.
func Read(file string) (Dashboard, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Dashboard{}, err
	}
	var object struct{ Data map[string]string }
	if err := yaml.Unmarshal(text, &object); err != nil {
		return Dashboard{}, fmt.Errorf("reading %s: %w", file, err)
	}
	if len(object.Data) != 1 {
		return Dashboard{}, fmt.Errorf("reading %s: %d dashboards", file, len(object.Data))
	}
	var d Dashboard
	for _, data := range object.Data {
		if err := json.Unmarshal([]byte(data), &d); err != nil {
			return Dashboard{}, fmt.Errorf("reading the dashboard of %s: %w", file, err)
		}
	}
	for _, p := range d.Panels() {
		if !slices.Contains([]string{typeGraph, typeNumber}, p.Type) {
			return Dashboard{}, fmt.Errorf("reading the dashboard of %s: %w: %s %q", file, errUnknownPanel, p.Type, p.Title)
		}
	}
	return d, nil
}

// Panels returns the panels of all rows.
func (d Dashboard) Panels() []Panel {
	var all []Panel
	for _, r := range d.Rows {
		all = append(all, r.Panels...)
	}
	return all
}
