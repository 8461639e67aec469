package render

import "wmco/bundle"

// mirrorEntries adds the hosts files, one folder per registry. containerd reads them on every pull, so nothing
// restarts.
func (e *emitter) mirrorEntries() {
	r, ok := e.wantedRow(rowHosts)
	if !ok {
		return
	}
	for _, f := range e.hosts.Files {
		content, err := hostsContent(e.templates, f)
		if err != nil {
			e.errs = append(e.errs, err)
			return
		}
		path := dirRegistries + `\` + f.Directory + `\hosts.toml`
		e.addContent(r, path, content)
		e.causedBy(r, path, f.Causes)
	}
}

// maybeSecret returns content that is secret if its preview differs.
func maybeSecret(data, preview []byte) bundle.Content {
	if string(data) == string(preview) {
		return bundle.Content{Data: data}
	}
	return bundle.Content{Data: data, Preview: preview}
}
