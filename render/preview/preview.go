// Package preview writes a bundle as a tree of files for review and git: every file of the node under its Windows path,
// and the rest of the bundle as YAML and JSON beside it. It is pure: the caller writes.
package preview

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/render"
)

// Names of the files beside the node's own.
const (
	ManifestFile    = "MANIFEST.json"
	ServicesFile    = "services.yaml"
	EnvironmentFile = "environment.yaml"
	HostFile        = "host.yaml"
	PayloadFile     = "payload.yaml"
	FindingsFile    = "findings.json"
	ProvenanceFile  = "provenance.json"
)

// File is one file of a preview. Path is relative, with forward slashes.
type File struct {
	Path string
	Data []byte
	// Secret is true for files with secrets in clear, which only Options.ShowSecrets writes.
	Secret bool
}

// Options of a preview.
type Options struct {
	// ShowSecrets writes secrets in clear.
	ShowSecrets bool
}

// Tree returns the files of one node's preview, by path.
func Tree(b render.Bundle, findings bundle.Findings, o Options) ([]File, error) {
	manifest, err := b.Manifest()
	if err != nil {
		return nil, fmt.Errorf("laying out the bundle: %w", err)
	}
	index, err := manifest.Encode()
	if err != nil {
		return nil, fmt.Errorf("laying out the bundle: %w", err)
	}
	files := []File{{Path: ManifestFile, Data: index}}
	for _, f := range b.Files() {
		files = append(files, File{Path: TreePath(f.Path), Data: shownContent(f.Content, o), Secret: f.Secret && o.ShowSecrets})
	}
	for name, value := range documentsOf(b, findings, o) {
		data, err := encodeDocument(name, value)
		if err != nil {
			return nil, fmt.Errorf("laying out %s: %w", name, err)
		}
		files = append(files, File{Path: name, Data: data, Secret: name == EnvironmentFile && o.ShowSecrets})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// TreePath returns the path in the tree of a file of the node: C:\k\x becomes C/k/x.
func TreePath(path string) string {
	return strings.ReplaceAll(strings.Replace(path, ":", "", 1), `\`, "/")
}

func shownContent(c bundle.Content, o Options) []byte {
	if o.ShowSecrets {
		return c.Data
	}
	return c.Shown()
}

// Shown limits findings to bundle.MostAnswers for one object, as in previews.
func Shown(findings bundle.Findings) bundle.Findings {
	return findings.AtMost(bundle.MostAnswers, reason.MoreFindings)
}

func documentsOf(b render.Bundle, findings bundle.Findings, o Options) map[string]any {
	if findings == nil {
		findings = bundle.Findings{}
	}
	return map[string]any{
		ServicesFile:    servicesOf(b),
		EnvironmentFile: environmentOf(b.Cluster, o),
		HostFile:        hostDocument(b),
		PayloadFile:     payloadDocument{Payload: b.Bundle.Payload()},
		FindingsFile:    Shown(findings),
		ProvenanceFile:  b.Provenance,
	}
}

// encodeDocument writes YAML or indented JSON, by the name's ending.
func encodeDocument(name string, value any) ([]byte, error) {
	if strings.HasSuffix(name, ".yaml") {
		return yaml.Marshal(value)
	}
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(value)
	return []byte(out.String()), err
}

type servicesDocument struct {
	Services []serviceView `json:"services"`
}

// serviceView adds the command as Windows gets it.
type serviceView struct {
	bundle.Service
	CommandLine string `json:"commandLine"`
}

func servicesOf(b render.Bundle) servicesDocument {
	doc := servicesDocument{Services: []serviceView{}}
	for _, s := range b.Services() {
		doc.Services = append(doc.Services, serviceView{Service: s, CommandLine: bundle.CommandLine(s.Argv)})
	}
	return doc
}

type environmentDocument struct {
	Machine  []variableView    `json:"machine"`
	Services []environmentView `json:"services"`
}

type environmentView struct {
	Name      string         `json:"name"`
	Variables []variableView `json:"variables"`
}

type variableView struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Secret bool   `json:"secret,omitempty"`
}

func environmentOf(l bundle.Layer, o Options) environmentDocument {
	doc := environmentDocument{Machine: variablesOf(l.Variables, o), Services: []environmentView{}}
	for _, e := range l.Environments {
		doc.Services = append(doc.Services, environmentView{Name: e.Name, Variables: variablesOf(e.Variables, o)})
	}
	return doc
}

func variablesOf(list []bundle.Variable, o Options) []variableView {
	views := make([]variableView, 0, len(list))
	for _, v := range list {
		view := variableView{Name: v.Name, Value: v.Value, Secret: v.Secret()}
		if v.Secret() {
			view.Value = string(shownContent(v.Content, o))
		}
		views = append(views, view)
	}
	return views
}

// hostDocument is the document of entries that are neither files nor services: one list per kind of entry, by the kind's key.
func hostDocument(b render.Bundle) map[string]any {
	doc := map[string]any{}
	if name := b.Cluster.HostName.Name + b.Node.HostName.Name; name != "" {
		doc["hostName"] = name
	}
	for _, k := range bundle.Kinds() {
		if list := b.Values(k.Kind); k.Key != "" && list != nil {
			doc[k.Key] = list
		}
	}
	return doc
}

type payloadDocument struct {
	Payload []bundle.Payload `json:"payload"`
}
