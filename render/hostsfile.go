package render

import (
	"errors"
	"fmt"
	"slices"
	"text/template"

	"github.com/BurntSushi/toml"

	"wmco/bundle"
	"wmco/render/mirrors"
)

// hostsContent writes a hosts.toml.
func hostsContent(set *template.Template, f mirrors.HostsFile) (bundle.Content, error) {
	data, err := executeTemplate(set, "hosts.toml", f)
	preview, err2 := executeTemplate(set, "hosts.toml", f.Masked())
	return maybeSecret(data, preview), errors.Join(err, err2)
}

var errNotTOML = errors.New("it is not TOML of the right form")

// hostsDocument is a hosts.toml as it is read.
type hostsDocument struct {
	Server string
	hostsEndpoint
	Host map[string]hostsEndpoint
}

type hostsEndpoint struct {
	Capabilities []mirrors.Capability
	SkipVerify   bool `toml:"skip_verify"`
	CA, Client   string
	Header       struct{ Authorization string }
}

func (e hostsEndpoint) toEndpoint(url string) mirrors.Endpoint {
	return mirrors.Endpoint{
		URL: url, Capabilities: e.Capabilities, SkipVerify: e.SkipVerify,
		Authorization: bundle.NewSecret(e.Header.Authorization), CA: e.CA, Client: e.Client,
	}
}

// parseHosts is the inverse of hostsContent. The order of the hosts is that in which containerd asks them.
func parseHosts(text []byte) (mirrors.HostsFile, error) {
	var d hostsDocument
	meta, err := toml.Decode(string(text), &d)
	if err != nil {
		return mirrors.HostsFile{}, fmt.Errorf("reading a hosts.toml: %w", errNotTOML) // the library quotes lines, which may hold credentials
	}
	var f mirrors.HostsFile
	if d.Server != "" {
		f.Server = d.toEndpoint(d.Server)
	}
	for _, key := range meta.Keys() {
		if len(key) == 2 && key[0] == "host" &&
			!slices.ContainsFunc(f.Hosts, func(e mirrors.Endpoint) bool { return e.URL == key[1] }) {
			f.Hosts = append(f.Hosts, d.Host[key[1]].toEndpoint(key[1]))
		}
	}
	return f, nil
}
