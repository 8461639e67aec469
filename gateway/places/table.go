package places

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"wmco/bundle"
)

// Where a host keeps the files of its gateway.
const (
	// Folder is for administrators and services alone.
	Folder = `C:\k\registry`
	// File is the table.
	File = Folder + `\places.json`
	// State has what the gateway writes itself: certificates (package identity) and TroubleFile.
	State = Folder + `\state`
	// Metrics has CountsFile alone: windows_exporter reads every file that ends in .prom, and reports a folder that changes under it as unreadable.
	Metrics = Folder + `\metrics`
	// CountsFile has the numbers of the gateway for Prometheus.
	CountsFile = Metrics + `\image-gateway.prom`
)

// Use is what a mirror is for.
type Use string

const (
	// Digests are pulls by digest (ImageDigestMirrorSet).
	Digests Use = "digests"
	// Tags are pulls by tag (ImageTagMirrorSet).
	Tags Use = "tags"
)

// Table is all that a node needs to decide. A scope is host[:port][/path], or *.host.
type Table struct {
	// Routed are the registries whose images are pulled by this table, as containerd names them; All for every one.
	Routed []string
	// Registries are the entries of registries.conf, in its order. Of those that match an image, the one with the longest scope counts; of equally
	// long ones, the first.
	Registries []Registry
	// Allowed are the scopes and images that may be pulled; empty for all. Denied are scopes of which nothing is pulled, from mirrors either.
	Allowed, Denied []string
	// Settings names the object with the lists of allowed and blocked registries.
	Settings string
	// Policies are which signatures images need; see PolicyFor.
	Policies []Policy
	// Credentials are for mirrors. The longest key that covers a mirror counts.
	Credentials []Credential
}

// All in Table.Routed stands for every registry.
const All = "*"

// IsRouted reports whether images of a registry are pulled by the table.
func (t Table) IsRouted(registry string) bool {
	return slices.Contains(t.Routed, All) || slices.Contains(t.Routed, strings.ToLower(registry))
}

// Registry is what is configured for the images of a scope.
type Registry struct {
	Scope   string   `json:"scope"`
	Mirrors []Mirror `json:"mirrors,omitempty"`
	// Blocked registries are not asked themselves.
	Blocked bool `json:"blocked,omitempty"`
	// Insecure registries need no valid certificate, and may speak plain HTTP.
	Insecure bool `json:"insecure,omitempty"`
	// Objects are those that block it, such as ImageDigestMirrorSet/quay.
	Objects []string `json:"objects,omitempty"`
}

// Mirror stands for the scope of its registry: what follows the scope in the name of an image is added to Location.
type Mirror struct {
	Location string `json:"location"`
	Use      Use    `json:"use"`
	Insecure bool   `json:"insecure,omitempty"`
}

// Credential is an entry of the pull secret.
type Credential struct {
	// Key is a scope without wildcard.
	Key string
	// Auth is base64 of user:password.
	Auth bundle.Secret
}

// file is the JSON of a table.
type file struct {
	Schema      int              `json:"schema"`
	Routed      []string         `json:"routed"`
	Registries  []Registry       `json:"registries"`
	Allowed     []string         `json:"allowed,omitempty"`
	Denied      []string         `json:"denied,omitempty"`
	Settings    string           `json:"settings,omitempty"`
	Policies    []Policy         `json:"policies,omitempty"`
	Credentials []credentialJSON `json:"credentials,omitempty"`
}

type credentialJSON struct {
	Key  string `json:"key"`
	Auth string `json:"auth"`
}

const (
	schema = 1
	// maxFile is the size of the largest file in bytes. The largest objects of an API server have 1.5 MB; a mirror set of that size makes about as
	// much.
	maxFile = 16 << 20
	what    = "places of images"
)

// Encode returns the content of the file, with the credentials in clear. What Decode would refuse is an error.
func (t Table) Encode() ([]byte, error) {
	if err := t.checkNames(); err != nil {
		return nil, err
	}
	f := file{Schema: schema, Routed: t.Routed, Registries: t.Registries, Allowed: t.Allowed, Denied: t.Denied, Settings: t.Settings, Policies: t.Policies}
	for _, c := range t.Credentials {
		f.Credentials = append(f.Credentials, credentialJSON{c.Key, c.Auth.Reveal()})
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(f); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", what, err)
	}
	if out.Len() > maxFile {
		return nil, fmt.Errorf("%w: %s", bundle.ErrTooLarge, what)
	}
	return out.Bytes(), nil
}

// Masked returns the table with its credentials masked.
func (t Table) Masked() Table {
	t.Credentials = slices.Clone(t.Credentials)
	for i := range t.Credentials {
		t.Credentials[i].Auth = t.Credentials[i].Auth.Masked()
	}
	return t
}

// Decode reads what Encode wrote; a newer schema is a *bundle.SchemaError. Errors have no secrets.
func Decode(data []byte) (Table, error) {
	if len(data) > maxFile {
		return Table{}, fmt.Errorf("%w: %s", bundle.ErrTooLarge, what)
	}
	if err := bundle.CheckSchema(data, what, schema); err != nil {
		return Table{}, err
	}
	var f file
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if d.Decode(&f) != nil { // the error can quote a value
		return Table{}, errors.New("reading " + what + ": it is not JSON of the right form")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Table{}, errors.New("reading " + what + ": something follows the value")
	}
	t := Table{Routed: f.Routed, Registries: f.Registries, Allowed: f.Allowed, Denied: f.Denied, Settings: f.Settings, Policies: f.Policies}
	for _, c := range f.Credentials {
		t.Credentials = append(t.Credentials, Credential{c.Key, bundle.NewSecret(c.Auth)})
	}
	return t, t.checkNames()
}

// location is host[:port][/path], with upper case in the host alone (github.com/openshift/api, config/v1, ImageMirror).
var location = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]+)?(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)

// checkNames refuses a table that would lead a request elsewhere than to a registry.
func (t Table) checkNames() error {
	for i, r := range t.Registries {
		if !location.MatchString(strings.TrimPrefix(r.Scope, "*.")) {
			return fmt.Errorf("%s: registries[%d].scope is no registry or part of one", what, i)
		}
		for j, m := range r.Mirrors {
			if !location.MatchString(m.Location) || m.Use != Digests && m.Use != Tags {
				return fmt.Errorf("%s: registries[%d].mirrors[%d] is no mirror", what, i, j)
			}
		}
	}
	return t.checkPolicies()
}
