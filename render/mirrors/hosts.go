package mirrors

import (
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/gateway/identity"
	"wmco/gateway/places"
)

// Capability is what containerd may use an endpoint for.
type Capability string

const (
	// Pull fetches manifests and layers by digest.
	Pull Capability = "pull"
	// Resolve turns a tag into a digest.
	Resolve Capability = "resolve"
	// Push is not used by nodes. A server that can only push is never asked for an image, so it blocks a registry.
	Push Capability = "push"
)

// String is the capability as containerd writes it.
func (c Capability) String() string { return string(c) }

// Endpoint is one place that containerd asks. Its URL contains the API version and is used unchanged (override_path).
type Endpoint struct {
	URL          string
	Capabilities []Capability
	// SkipVerify accepts any certificate, and plain HTTP if the URL's scheme is http.
	SkipVerify bool
	// Authorization is the value of that header; zero for none.
	Authorization bundle.Secret
	// CA and Client are paths on the node: the CA that is trusted in place of the system's, and a certificate with its key. Only endpoints of the
	// gateway have them.
	CA, Client string
}

// IsZero reports whether there is no endpoint.
func (e Endpoint) IsZero() bool { return e.URL == "" }

// HostsFile is the configuration of one registry host.
type HostsFile struct {
	// Host is the registry, with its port; DefaultHost for all registries without a file.
	Host string
	// Directory is the folder's name.
	Directory string
	// Server is tried last. If it is zero, containerd uses its default, the registry itself.
	Server Endpoint
	// Hosts are tried in this order, before the server.
	Hosts []Endpoint
	// Routed is true if containerd uses the gateway for this registry.
	Routed bool
	// Causes are the objects that the file comes from.
	Causes []bundle.Ref
}

// Masked returns the file with its credentials masked.
func (f HostsFile) Masked() HostsFile {
	f.Hosts = slices.Clone(f.Hosts)
	for _, e := range f.allEndpoints() {
		e.Authorization = e.Authorization.Masked()
	}
	return f
}

// WithCredentials returns the file with the credentials that another one has for the same endpoints, and reports
// whether any differ. Endpoints that the other file does not have keep their credentials.
func (f HostsFile) WithCredentials(other HostsFile) (next HostsFile, differ bool) {
	f.Hosts = slices.Clone(f.Hosts)
	for _, e := range f.allEndpoints() {
		before := e.Authorization
		for _, o := range other.allEndpoints() {
			if o.URL == e.URL {
				e.Authorization = o.Authorization
			}
		}
		differ = differ || e.Authorization != before
	}
	return f, differ
}

// allEndpoints returns the server and the hosts, to change them.
func (f *HostsFile) allEndpoints() []*Endpoint {
	list := []*Endpoint{&f.Server}
	for i := range f.Hosts {
		list = append(list, &f.Hosts[i])
	}
	return list
}

// DefaultHost is the Host of the file for all registries without a file.
const DefaultHost = "_default"

// directoryName is the folder that containerd looks into first on every system: a port is written _5000_, because
// Windows reserves the colon (containerd docs/hosts.md, learn.microsoft.com/windows/win32/fileio/naming-a-file).
func directoryName(host string) string {
	name, port, found := strings.Cut(host, ":")
	if !found {
		return name
	}
	return name + "_" + port + "_"
}

// blockedFile returns a file that blocks every pull.
func blockedFile(host string, causes []bundle.Ref) HostsFile {
	url := "https://blocked.invalid/v2"
	if host != DefaultHost {
		url = endpointURL(scope{host: host}, transportTLS)
	}
	return HostsFile{
		Host: host, Directory: directoryName(host), Server: Endpoint{URL: url, Capabilities: []Capability{Push}},
		Causes: causes,
	}
}

// routedFile returns a file that sends every pull to the gateway.
func routedFile(host, gateway string, causes []bundle.Ref) HostsFile {
	return HostsFile{
		Host: host, Directory: directoryName(host), Routed: true, Causes: causes, Server: Endpoint{
			URL: "https://" + gateway + "/v2", Capabilities: []Capability{Pull, Resolve},
			CA: places.State + `\` + identity.CA, Client: places.State + `\` + identity.Client,
		},
	}
}

// transport is the scheme of an endpoint's URL.
type transport string

const (
	transportTLS transport = "https"
	// transportAny is TLS without verification of the certificate, or no TLS: containerd tries both for an http URL
	// with skip_verify.
	transportAny transport = "http"
)

// endpointURL returns the address of an endpoint: scheme, host, API version, path. Docker Hub's API has another host
// name than its images; containerd replaces the name only for registries without a file.
func endpointURL(x scope, t transport) string {
	host := x.host
	if host == dockerHub {
		host = "registry-1.docker.io"
	}
	url := string(t) + "://" + host + "/v2"
	if x.path != "" {
		url += "/" + x.path
	}
	return url
}
