package places

import (
	"slices"
	"strings"

	"wmco/bundle"
)

// Image is what containerd asks for.
type Image struct {
	// Registry is the host of the image's name, with its port.
	Registry string
	// Repository is the rest of the name.
	Repository string
	// Reference is a tag, or a digest such as sha256:....
	Reference string
}

// Name is the image's name without tag and digest.
func (i Image) Name() string { return i.Registry + "/" + i.Repository }

// IsDigest reports whether the reference is a digest: a tag has no colon.
func (i Image) IsDigest() bool { return strings.Contains(i.Reference, ":") }

func (i Image) String() string {
	if i.IsDigest() {
		return i.Name() + "@" + i.Reference
	}
	return i.Name() + ":" + i.Reference
}

// Place is where an image is pulled from.
type Place struct {
	// Registry and Repository are asked for the image's reference.
	Registry, Repository string
	Insecure             bool
	// Source is true for the image's own name: only there the credentials are used that belong to the image.
	Source bool
	// Auth is base64 of user:password for a mirror; zero for none.
	Auth bundle.Secret
}

// Name is what the image is called at the place.
func (p Place) Name() string { return p.Registry + "/" + p.Repository }

// Skipped is a place that is configured, and must not be asked.
type Skipped struct {
	Name string
	// Why names the object that forbids it.
	Why string
}

// Decision is where an image is pulled from, in the order in which the places are asked. Without a place the image is refused; Skipped has the
// reasons.
type Decision struct {
	Places  []Place
	Skipped []Skipped
}

// Decide returns where an image is pulled from.
func (t Table) Decide(i Image) Decision {
	if why := t.whyDenied(i); why != "" {
		return Decision{Skipped: []Skipped{{i.Name(), why}}}
	}
	var d Decision
	own, scope := t.findRegistry(i.Name())
	use := Tags
	if i.IsDigest() {
		use = Digests
	}
	for _, m := range own.Mirrors {
		if m.Use == use {
			p := placeOf(m.Location + i.Name()[len(scope):])
			p.Insecure, p.Auth = m.Insecure, t.authFor(p.Name())
			d.addPlace(t, p)
		}
	}
	source := Place{Registry: i.Registry, Repository: i.Repository, Insecure: own.Insecure, Source: true}
	d.addPlace(t, source)
	return d
}

// addPlace appends a place unless its own entry blocks it: a mirror is looked up as any registry is.
func (d *Decision) addPlace(t Table, p Place) {
	if p.Repository == "" {
		d.Skipped = append(d.Skipped, Skipped{p.Registry, "the mirror has no name for it"})
		return
	}
	if r, _ := t.findRegistry(p.Name()); r.Blocked {
		d.Skipped = append(d.Skipped, Skipped{p.Name(), r.Scope + " must not be contacted" + namedBy(r.Objects...)})
		return
	}
	d.Places = append(d.Places, p)
}

func namedBy(objects ...string) string {
	if len(objects) == 0 {
		return ""
	}
	return " (" + strings.Join(objects, ", ") + ")"
}

func placeOf(name string) Place {
	registry, repository, _ := strings.Cut(name, "/")
	return Place{Registry: registry, Repository: repository}
}

// whyDenied returns why no place is asked for an image. As on Linux nodes, its own name counts, not that at a mirror.
func (t Table) whyDenied(i Image) string {
	names := func(s string) bool { return namesImage(s, i) }
	if k := slices.IndexFunc(t.Denied, names); k >= 0 {
		return t.Denied[k] + " is blocked" + namedBy(t.Settings)
	}
	if len(t.Allowed) > 0 && !slices.ContainsFunc(t.Allowed, names) {
		return "it is not in the allowed registries" + namedBy(t.Settings)
	}
	return ""
}

// findRegistry returns the entry for a name, and the part of the name that its scope matches. Without an entry both are empty.
func (t Table) findRegistry(name string) (r Registry, scope string) {
	for _, x := range t.Registries {
		if len(x.Scope) > len(r.Scope) && Covers(x.Scope, name) {
			r = x
		}
	}
	if strings.HasPrefix(r.Scope, "*.") {
		host, _, _ := strings.Cut(name, "/")
		host, _, _ = strings.Cut(host, ":")
		return r, host
	}
	return r, r.Scope
}

// Covers reports whether a name, or another scope without wildcard, is in a scope.
func Covers(scope, name string) bool {
	if suffix, ok := strings.CutPrefix(scope, "*"); ok {
		host, _, _ := strings.Cut(name, "/")
		host, _, _ = strings.Cut(host, ":")
		return strings.HasSuffix(host, suffix)
	}
	return name == scope || strings.HasPrefix(name, scope+"/")
}

// authFor returns the credentials of the longest key that covers a mirror.
func (t Table) authFor(name string) bundle.Secret {
	best := Credential{}
	for _, c := range t.Credentials {
		if len(c.Key) > len(best.Key) && Covers(c.Key, name) {
			best = c
		}
	}
	return best.Auth
}
