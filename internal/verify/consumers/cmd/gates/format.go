package main

import (
	"bytes"
	_ "embed"
	goformat "go/format"
	"maps"
	"slices"
	"text/template"
)

//go:embed gates.go.tmpl
var fileTemplate string

// tables is the data of the template of the generated file.
type tables struct {
	// Version is the Kubernetes release, such as v1.36.3.
	Version string
	Gates   []gate
	Flags   []string
}

func format(t tables) ([]byte, error) {
	parsed, err := template.New("gates.go.tmpl").Option("missingkey=error").Parse(fileTemplate)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, t); err != nil {
		return nil, err
	}
	return goformat.Source(out.Bytes())
}

func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
