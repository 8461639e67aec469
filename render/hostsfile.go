package render

import (
	"fmt"
	"slices"

	"github.com/BurntSushi/toml"

	"wmco/bundle"
)

// hostsDocument is a hosts.toml as it is read.
type hostsDocument struct {
	Server string
	hostsEndpoint
	Host map[string]hostsEndpoint
}

type hostsEndpoint struct {
	Capabilities []string
	SkipVerify   bool `toml:"skip_verify"`
	Header       struct{ Authorization string }
}

func (e hostsEndpoint) view(url string) endpointView {
	return endpointView{URL: url, Capabilities: e.Capabilities, SkipVerify: e.SkipVerify, Authorization: e.Header.Authorization}
}

// parseHosts is the inverse of the hosts.toml template. The order of the hosts is that in which containerd asks them.
func parseHosts(text []byte) (hostsView, error) {
	var d hostsDocument
	meta, err := toml.Decode(string(text), &d)
	if err != nil {
		return hostsView{}, fmt.Errorf("reading a hosts.toml: %w", errNotTOML) // the library quotes lines, which may hold credentials
	}
	var v hostsView
	if d.Server != "" {
		server := d.view(d.Server)
		v.Server = &server
	}
	for _, key := range meta.Keys() {
		if len(key) == 2 && key[0] == "host" && !slices.ContainsFunc(v.Hosts, func(e endpointView) bool { return e.URL == key[1] }) {
			v.Hosts = append(v.Hosts, d.Host[key[1]].view(key[1]))
		}
	}
	return v, nil
}

// endpoints returns the server, if there is one, and the hosts.
func (v *hostsView) endpoints() []*endpointView {
	var list []*endpointView
	if v.Server != nil {
		list = append(list, v.Server)
	}
	for i := range v.Hosts {
		list = append(list, &v.Hosts[i])
	}
	return list
}

// withCredentials returns the view with the credentials that another one has for the same endpoints. Those of endpoints that the other one
// lacks stay.
func (v hostsView) withCredentials(other hostsView) hostsView {
	v = v.clone()
	for _, e := range v.endpoints() {
		for _, o := range other.endpoints() {
			if o.URL == e.URL {
				e.Authorization = o.Authorization
			}
		}
	}
	return v
}

// masked returns the view with masked credentials.
func (v hostsView) masked() hostsView {
	v = v.clone()
	for _, e := range v.endpoints() {
		if e.Authorization != "" {
			e.Authorization = bundle.MaskedText
		}
	}
	return v
}

func (v hostsView) clone() hostsView {
	if v.Server != nil {
		server := *v.Server
		v.Server = &server
	}
	v.Hosts = slices.Clone(v.Hosts)
	return v
}
