package render

import (
	"wmco/bundle"
	"wmco/render/mirrors"
)

// hostsView is the view of the hosts.toml template.
type hostsView struct {
	// Server is nil if containerd asks the registry itself.
	Server *endpointView
	Hosts  []endpointView
}

type endpointView struct {
	URL           string
	Capabilities  []string
	SkipVerify    bool
	Authorization string
}

func viewEndpoint(e mirrors.Endpoint) endpointView {
	v := endpointView{URL: e.URL, SkipVerify: e.SkipVerify, Authorization: e.Authorization.Reveal()}
	for _, c := range e.Capabilities {
		v.Capabilities = append(v.Capabilities, string(c))
	}
	return v
}

func viewHosts(f mirrors.HostsFile) hostsView {
	var v hostsView
	if !f.Server.IsZero() {
		server := viewEndpoint(f.Server)
		v.Server = &server
	}
	for _, h := range f.Hosts {
		v.Hosts = append(v.Hosts, viewEndpoint(h))
	}
	return v
}

// mirrorEntries adds the hosts files, one folder per registry. containerd reads them on every pull, so nothing restarts.
func (e *emitter) mirrorEntries(files []mirrors.HostsFile) {
	r, ok := e.wanted(rowHosts)
	if !ok {
		return
	}
	for _, f := range files {
		data, err := execute(e.templates, "hosts.toml", viewHosts(f))
		if err != nil {
			e.errs = append(e.errs, err)
			return
		}
		preview, err := execute(e.templates, "hosts.toml", viewHosts(f.Masked()))
		if err != nil {
			e.errs = append(e.errs, err)
			return
		}
		path := dirRegistries + `\` + f.Directory + `\hosts.toml`
		e.add(r, path, made(data, preview))
		e.causedBy(r, path, f.Causes)
	}
}

// made returns content that is secret if its preview differs.
func made(data, preview []byte) bundle.Content {
	if string(data) == string(preview) {
		return bundle.Content{Data: data}
	}
	return bundle.Content{Data: data, Preview: preview}
}
