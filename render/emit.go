package render

import (
	"errors"
	"fmt"
	"text/template"

	"wmco/bundle"
	"wmco/layout"
	"wmco/payload/sources"
	"wmco/render/mirrors"
)

// emitter collects the entries of one layer. A view passes an entry with the row that it belongs to. The row decides
// whether the entry is wanted for this platform and stage, and sets its access, impact and causes.
type emitter struct {
	cluster Cluster
	// masked is the cluster with its secrets masked; previews of secret contents are made from it.
	masked Cluster
	// hosts are the hosts files of the cluster, executables where nodes fetch executables.
	hosts       mirrors.Result
	executables sources.List
	node        Node
	stage       bundle.Stage
	rows        map[RowID]Row
	templates   *template.Template
	options     Options

	layer      bundle.Layer
	provenance bundle.Provenance
	errs       []error
}

// wantedRow returns the row, and reports whether it belongs to the layer.
func (e *emitter) wantedRow(id RowID) (Row, bool) {
	r, ok := e.rows[id]
	if !ok {
		e.errs = append(e.errs, fmt.Errorf("no row %q in the catalog", id))
		return Row{}, false
	}
	return r, r.Layer == e.layer.Kind && r.appliesTo(e.cluster.Platform, e.stage)
}

// addCauses records the objects that an entry comes from.
func (e *emitter) addCauses(r Row, name string) {
	var refs []bundle.Ref
	for _, origin := range r.Causes {
		ref, ok := e.node.Origins[origin]
		if !ok {
			ref, ok = e.cluster.Origins[origin]
		}
		if ok {
			refs = append(refs, ref)
		}
	}
	e.causedBy(r, name, refs)
}

// causedBy records objects without the place that they were read from, which is not part of a bundle's provenance.
func (e *emitter) causedBy(r Row, name string, refs []bundle.Ref) {
	id := r.Kind.ID(name)
	for _, ref := range refs {
		e.provenance[id] = append(e.provenance[id], bundle.Ref{
			Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Digest: ref.Digest,
		})
	}
}

// content returns the content of a file for a cluster, so that a preview is the same function of the masked cluster.
// Nil means no file.
type content func(Cluster) ([]byte, error)

func (e *emitter) addFile(id RowID, c content) {
	r, ok := e.wantedRow(id)
	if !ok {
		return
	}
	text, err := e.readContent(r, c)
	if err != nil {
		e.errs = append(e.errs, err)
		return
	}
	if text.Data == nil {
		return
	}
	e.addContent(r, r.Name, text)
	e.addCauses(r, r.Name)
}

// addContent puts a file into the layer. The file is secret if its preview differs from its content.
func (e *emitter) addContent(r Row, path string, c bundle.Content) {
	f := bundle.File{
		Path: path, Secret: c.Secret(), Access: r.Access, Impact: r.Impact, Content: c, Size: int64(len(c.Data)),
		Digest: e.contentDigest(c),
	}
	if f.Digest == bundle.Masked {
		f.Size = 0
	}
	e.layer.Files = append(e.layer.Files, f)
}

func (e *emitter) readContent(r Row, c content) (bundle.Content, error) {
	data, err := c(e.cluster)
	if err != nil || !r.Secret {
		return bundle.Content{Data: data}, err
	}
	preview, err := c(e.masked)
	return maybeSecret(data, preview), err
}

func (e *emitter) contentDigest(c bundle.Content) bundle.Digest {
	if c.Secret() {
		return e.options.Key.Of(c.Data)
	}
	return bundle.Of(c.Data)
}

// fromTemplate returns the content that a template makes of a view of the cluster.
func (e *emitter) fromTemplate(name string, view func(Cluster) any) content {
	return func(c Cluster) ([]byte, error) { return executeTemplate(e.templates, name, view(c)) }
}

func (e *emitter) addService(id RowID, s bundle.Service) {
	r, ok := e.wantedRow(id)
	if !ok {
		return
	}
	s.Name, s.Description, s.Start, s.Impact = r.Name, descriptionPrefix+r.Name, bundle.StartAuto, r.Impact
	s.Environment = proxyEnvironment
	e.layer.Services = append(e.layer.Services, s)
	e.addCauses(r, s.Name)
}

// proxyVariable returns one variable of the proxy. It is secret if the value holds a password.
func (e *emitter) proxyVariable(name string, value, shown string, impact bundle.Impact) bundle.Variable {
	if value == shown {
		return bundle.Variable{Name: name, Value: value, Impact: impact}
	}
	c := bundle.Content{Data: []byte(value), Preview: []byte(shown)}
	return bundle.Variable{Name: name, Digest: e.options.Key.Of(c.Data), Impact: impact, Content: c}
}

// normalizeLayer sorts and checks the layer. An error is a defect of this program, not of the inputs.
func (e *emitter) normalizeLayer() error {
	if err := errors.Join(e.errs...); err != nil {
		return err
	}
	e.layer.Normalize()
	if err := e.layer.Check(); err != nil {
		return err
	}
	return layout.CheckLayer(e.layer)
}
