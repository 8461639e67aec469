package mirrors

import (
	"slices"
	"strings"
)

// Place is a place at which containerd asks for the manifest of an image.
type Place struct {
	// Manifest is the URL of the manifest. An endpoint is asked for the whole path of the image, below its URL.
	Manifest string
	Endpoint
}

// Places returns where containerd asks for an image, a full name with a tag or digest, in this order.
func (r Result) Places(image string) []Place {
	i := imageOf(image)
	need := Resolve
	if strings.Contains(image, "@") {
		need = Pull
	}
	place := func(e Endpoint) Place { return Place{e.URL + "/" + i.Repository + "/manifests/" + i.Reference, e} }
	f, _ := r.fileFor(image)
	var all []Place
	if f.Routed {
		for _, p := range r.Table.Decide(i).Places {
			e := urlOf(p)
			all = append(all, Place{e.URL + "/manifests/" + i.Reference, e})
		}
		return all
	}
	for _, h := range f.Hosts {
		if slices.Contains(h.Capabilities, need) {
			all = append(all, place(h))
		}
	}
	if !r.Lookup(image).Source {
		return all
	}
	own := Endpoint{URL: endpointURL(scope{host: strings.ToLower(i.Registry)}, transportTLS)}
	if !f.Server.IsZero() && slices.Contains(f.Server.Capabilities, need) {
		own = f.Server
	}
	return append(all, place(own))
}
