package mirrors

import (
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/gateway/places"
)

// Lookup is where containerd on a node looks for an image.
type Lookup struct {
	Image string `json:"image"`
	// By is "tag" or "digest".
	By string `json:"by"`
	// Mirrors are the endpoints that are asked, in this order.
	Mirrors []string `json:"mirrors"`
	// Source reports whether the image's own registry is asked after them.
	Source bool `json:"source"`
}

// Lookup returns where containerd looks for an image, a full name with a tag or digest.
func (r Result) Lookup(image string) Lookup {
	l := Lookup{Image: image, By: "tag", Mirrors: []string{}, Source: true}
	need := Resolve
	if strings.Contains(image, "@") {
		l.By, need = "digest", Pull
	}
	f, ok := r.fileFor(image)
	if !ok {
		return l
	}
	if f.Routed {
		l.Source = false
		for _, p := range r.Table.Decide(imageOf(image)).Places {
			if l.Source = p.Source; !p.Source {
				l.Mirrors = append(l.Mirrors, urlOf(p).URL)
			}
		}
		return l
	}
	for _, h := range f.Hosts {
		if slices.Contains(h.Capabilities, need) {
			l.Mirrors = append(l.Mirrors, h.URL)
		}
	}
	l.Source = f.Server.IsZero() || len(f.Hosts) == 0 && slices.Contains(f.Server.Capabilities, need) ||
		f.Server.SkipVerify && f.sourceIsServer()
	return l
}

// imageOf returns the parts of a full name with a tag or digest.
func imageOf(image string) places.Image {
	registry, rest, _ := strings.Cut(image, "/")
	i := places.Image{Registry: registry}
	name, digest, byDigest := strings.Cut(rest, "@")
	i.Repository, i.Reference, _ = strings.Cut(name, ":")
	if byDigest {
		i.Reference = digest
	}
	return i
}

// urlOf returns a place of the gateway as an endpoint: that of one repository.
func urlOf(p places.Place) Endpoint {
	t := transportTLS
	if p.Insecure {
		t = transportAny
	}
	e := Endpoint{URL: endpointURL(scope{host: p.Registry, path: p.Repository}, t), SkipVerify: p.Insecure}
	if !p.Auth.IsZero() {
		e.Authorization = bundle.NewSecret("Basic " + p.Auth.Reveal())
	}
	return e
}

// sourceIsServer reports whether the server is the registry itself, in its insecure form.
func (f HostsFile) sourceIsServer() bool {
	return f.Server.URL == endpointURL(scope{host: f.Host}, transportAny)
}

// fileFor returns the file of the image's registry, or the one for all others.
func (r Result) fileFor(image string) (HostsFile, bool) {
	host, _, _ := strings.Cut(image, "/")
	for _, name := range []string{strings.ToLower(host), DefaultHost} {
		if i := slices.IndexFunc(r.Files, func(f HostsFile) bool { return f.Host == name }); i >= 0 {
			return r.Files[i], true
		}
	}
	return HostsFile{}, false
}
