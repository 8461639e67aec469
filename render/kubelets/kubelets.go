// Package kubelets knows what the kubelet of each minor version of Kubernetes accepts: feature gates, flags, fields of
// its configuration and their values. What it does not know stops it, or, for a field, is ignored without a message
// that reaches anybody.
//
//	internal/build/kubelets, built with the pins of payload/kubernetes-<minor> --> <minor>.json --> Of(minor)
//
// The tables are generated (hack/kubelets) and embedded. The rules for values are ours, held to the kubelets themselves
// with random settings (hack/minors). The package is pure.
package kubelets

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed *.json
var files embed.FS

// Gate is what a kubelet knows of one feature gate. A locked gate accepts no value but its default.
type Gate struct {
	Locked, Default bool
	// Needs are the gates that must be on where this one is on, by default too; otherwise the kubelet panics at start.
	Needs []string
}

// Table is what one kubelet knows.
type Table struct {
	// Version is such as "v1.36.3".
	Version string
	Gates   map[string]Gate
	// Flags are those of a Windows build, without dashes.
	Flags map[string]bool
	// Fields are the JSON paths of KubeletConfiguration, such as "logging.flushFrequency". Elements of lists have no
	// index.
	Fields map[string]bool
}

// file is the form of a generated table.
type file struct {
	Version string              `json:"version"`
	Pins    string              `json:"pins"`
	Gates   map[string]string   `json:"gates"`
	Needs   map[string][]string `json:"needs"`
	Flags   []string            `json:"flags"`
	Fields  []string            `json:"fields"`
}

// tables are decoded once: the files are part of the program, and cannot change.
//
//nolint:gochecknoglobals // a table
var tables = sync.OnceValues(decodeTables)

// Of returns the table of a minor version such as "1.36", and whether there is one.
func Of(minor string) (Table, bool) {
	all, err := tables()
	if err != nil {
		return Table{}, false
	}
	t, ok := all[minor]
	return t, ok
}

func decodeTables() (map[string]Table, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("listing the tables of kubelets: %w", err)
	}
	all := map[string]Table{}
	for _, e := range entries {
		data, err := files.ReadFile(e.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the table of a kubelet: %w", err)
		}
		var f file
		if err := json.Unmarshal(data, &f); err != nil {
			return nil, fmt.Errorf("reading the table of a kubelet %s: %w", e.Name(), err)
		}
		all[strings.TrimSuffix(e.Name(), ".json")] = f.table()
	}
	return all, nil
}

func (f file) table() Table {
	t := Table{Version: f.Version, Gates: map[string]Gate{}, Flags: setOf(f.Flags), Fields: setOf(f.Fields)}
	for name, value := range f.Gates {
		words := strings.Fields(value)
		t.Gates[name] = Gate{Locked: slices.Contains(words, "locked"), Default: slices.Contains(words, "on"), Needs: f.Needs[name]}
	}
	return t
}

func setOf(list []string) map[string]bool {
	set := map[string]bool{}
	for _, s := range list {
		set[s] = true
	}
	return set
}
