package render

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"wmco/bundle"
	"wmco/gateway/places"
	"wmco/render/mirrors"
)

// Urgent is what of a change must not wait for a rollout: without the CAs that kubelet and API server trust each other
// by, a node is lost; without the pull secret it pulls no image.
type Urgent struct {
	// Layer is the cluster layer that a node has, with only the urgent changes; zero if there are none.
	Layer bundle.Layer
	// Inputs are those that differ.
	Inputs []UrgentInput
	// Left are the registries whose credentials cannot be separated from other changes.
	Left []string
}

// UrgentInput is one input that must not wait.
type UrgentInput struct {
	Name UrgentName
	// CA is the one of the node that expires first of those that have a successor, Expires when; empty for the pull
	// secret.
	CA      string
	Expires time.Time
}

// UrgentName names an urgent input for people and in metrics.
type UrgentName string

const (
	// KubeletClientCA are the CAs whose clients may call the kubelet.
	KubeletClientCA UrgentName = "kubelet client CA"
	// APIServerCA is the CA by which nodes know the API server.
	APIServerCA UrgentName = "API server CA"
	// PullSecret are the credentials of registries and mirrors.
	PullSecret UrgentName = "pull secret"
)

// UrgentNames returns every name.
func UrgentNames() []UrgentName { return []UrgentName{KubeletClientCA, APIServerCA, PullSecret} }

// String is the input in one phrase.
func (u UrgentInput) String() string {
	if u.CA == "" {
		return "the " + string(u.Name)
	}
	return fmt.Sprintf("the %s (%s of the node expires on %s)", u.Name, u.CA, u.Expires.UTC().Format(time.DateOnly))
}

// Urgent returns the urgent changes for a node with this cluster layer.
func (f *Fleet) Urgent(has bundle.Layer) (Urgent, error) {
	wanted, ok := f.shared[has.Stage]
	if !ok || has.Kind != bundle.LayerCluster {
		return Urgent{}, nil
	}
	next := has
	next.Files = slices.Clone(has.Files)
	var u Urgent
	secret := false
	for i, old := range has.Files {
		k := slices.IndexFunc(wanted.layer.Files, func(w bundle.File) bool {
			return bundle.FoldPath(w.Path) == bundle.FoldPath(old.Path)
		})
		if k < 0 || bytes.Equal(wanted.layer.Files[k].Content.Data, old.Content.Data) {
			continue
		}
		now := wanted.layer.Files[k]
		registry, isHosts := registryOf(old.Path)
		switch {
		case old.Path == fileKubeletCA:
			next.Files[i] = now
			u.Inputs = append(u.Inputs, firstExpiring(KubeletClientCA, old.Content.Data, now.Content.Data))
		case old.Path == fileBootstrapCA:
			next.Files[i] = now
			u.Inputs = append(u.Inputs, firstExpiring(APIServerCA, old.Content.Data, now.Content.Data))
		case old.Path == filePullCredentials:
			file, changed, err := f.renewPullCredentials(has.Stage, old, now)
			if err != nil {
				return Urgent{}, err
			}
			next.Files[i], secret = file, secret || changed
		case old.Path == places.File:
			file, changed, err := f.renewPlaces(has.Stage, old, now)
			if err != nil {
				return Urgent{}, err
			}
			next.Files[i], secret = file, secret || changed
		case isHosts:
			file, changed, err := f.renewCredentials(has.Stage, old, now)
			if errors.Is(err, errMixed) {
				u.Left = append(u.Left, registry)
				continue
			}
			if err != nil {
				return Urgent{}, fmt.Errorf("renewing the credentials of registry %s: %w", registry, err)
			}
			next.Files[i], secret = file, secret || changed
		}
	}
	if secret {
		u.Inputs = append(u.Inputs, UrgentInput{Name: PullSecret})
	}
	if len(u.Inputs) > 0 {
		u.Layer = next
	}
	return u, nil
}

// registryOf returns the folder of a hosts.toml; false for another file.
func registryOf(path string) (string, bool) {
	dir, ok := strings.CutSuffix(path, `\hosts.toml`)
	if !ok {
		return "", false
	}
	return strings.CutPrefix(dir, dirRegistries+`\`)
}

// errMixed means that the credentials in a file cannot be told from the rest.
var errMixed = errors.New("the file was written in another form")

// renewCredentials returns the hosts.toml that a node has, with the credentials of another one. It reports whether they
// differ.
func (f *Fleet) renewCredentials(stage bundle.Stage, old, now bundle.File) (bundle.File, bool, error) {
	has, err := parseHosts(old.Content.Data)
	wanted, err2 := parseHosts(now.Content.Data)
	if err := errors.Join(err, err2); err != nil {
		return bundle.File{}, false, errMixed // nothing is changed that is not understood
	}
	next, differ := has.WithCredentials(wanted)
	if !differ {
		return old, false, nil
	}
	same, err := executeTemplate(f.templates, "hosts.toml", has)
	if err != nil {
		return bundle.File{}, false, err
	}
	if !bytes.Equal(same, old.Content.Data) {
		return bundle.File{}, false, errMixed
	}
	content, err := hostsContent(f.templates, next)
	if err != nil {
		return bundle.File{}, false, err
	}
	if bytes.Equal(content.Data, now.Content.Data) {
		return now, true, nil
	}
	e := f.newEmitter(bundle.LayerCluster, stage, Node{})
	e.addContent(f.rows[rowHosts], old.Path, content)
	return e.layer.Files[0], true, nil
}

// renewPullCredentials returns the kubelet's credentials that a node has, with what the entries are now. It has no other
// entry: one may be for a registry that has mirrors in the hosts files of this node.
func (f *Fleet) renewPullCredentials(stage bundle.Stage, old, now bundle.File) (bundle.File, bool, error) {
	has, wanted := decodePullCredentials(old.Content.Data), decodePullCredentials(now.Content.Data)
	if has == nil || wanted == nil {
		return old, false, nil // a stand-in
	}
	var next []mirrors.KubeletCredential
	for _, c := range wanted {
		if slices.ContainsFunc(has, func(h mirrors.KubeletCredential) bool { return h.Key == c.Key }) {
			next = append(next, c)
		}
	}
	content, err := pullCredentials(next)
	if err != nil || bytes.Equal(content.Data, old.Content.Data) {
		return old, false, err
	}
	if bytes.Equal(content.Data, now.Content.Data) {
		return now, true, nil
	}
	e := f.newEmitter(bundle.LayerCluster, stage, Node{})
	e.addContent(f.rows[rowPullCredentials], old.Path, content)
	return e.layer.Files[0], true, nil
}

// renewPlaces returns the places of images that a node has, with the credentials of other ones.
func (f *Fleet) renewPlaces(stage bundle.Stage, old, now bundle.File) (bundle.File, bool, error) {
	has, err := places.Decode(old.Content.Data)
	wanted, err2 := places.Decode(now.Content.Data)
	if errors.Join(err, err2) != nil {
		return old, false, nil //nolint:nilerr // it is of another release
	}
	changed := false
	for i, c := range has.Credentials {
		k := slices.IndexFunc(wanted.Credentials, func(w places.Credential) bool { return w.Key == c.Key })
		if k >= 0 && c.Auth.Reveal() != wanted.Credentials[k].Auth.Reveal() {
			has.Credentials[i], changed = wanted.Credentials[k], true
		}
	}
	if !changed {
		return old, false, nil
	}
	content, err := placesContent(has)
	if err != nil {
		return bundle.File{}, false, err
	}
	if bytes.Equal(content.Data, now.Content.Data) {
		return now, true, nil
	}
	e := f.newEmitter(bundle.LayerCluster, stage, Node{})
	e.addContent(f.rows[rowPlaces], old.Path, content)
	return e.layer.Files[0], true, nil
}

// firstExpiring returns an input with the first CA of a node that expires and has a successor, or the first of all if
// none is known to have one.
func firstExpiring(input UrgentName, has, wanted []byte) UrgentInput {
	old, _ := parsePEM(string(has))
	now, _ := parsePEM(string(wanted))
	latest := map[string]time.Time{}
	for _, c := range old {
		if at := c.parsed.NotAfter; at.After(latest[c.displayName()]) {
			latest[c.displayName()] = at
		}
	}
	succeeded := map[string]time.Time{}
	for _, c := range now {
		at, ok := latest[c.displayName()]
		if ok && !slices.ContainsFunc(old, func(o certificate) bool { return bytes.Equal(o.der, c.der) }) {
			succeeded[c.displayName()] = at
		}
	}
	if len(succeeded) == 0 {
		succeeded = latest
	}
	u := UrgentInput{Name: input}
	for name, at := range succeeded {
		if u.CA == "" || cmp.Or(at.Compare(u.Expires), strings.Compare(name, u.CA)) < 0 {
			u.CA, u.Expires = name, at
		}
	}
	return u
}

// displayName is what people call a CA.
func (c certificate) displayName() string {
	return cmp.Or(c.parsed.Subject.CommonName, c.parsed.Subject.String())
}
