package mirrors

import (
	"regexp"
	"strings"
)

// scope is host[:port][/path], or *.host.
type scope struct {
	// host includes the port. It is lower case, because Windows and DNS ignore case.
	host string
	// path has no slash at its ends. It is empty for the whole host.
	path     string
	wildcard bool
}

// The forms of the API (openshift/api config/v1, ImageDigestMirrors): no scheme, tag or digest; only the host may have
// upper case.
const (
	hostPattern = `([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(\.([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*(:[0-9]+)?`
	pathPattern = `(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*`
)

var (
	plainScope    = regexp.MustCompile(`^` + hostPattern + pathPattern + `$`)
	wildcardScope = regexp.MustCompile(`^\*(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)+$`)
)

// parseScope reads a scope, and reports whether text is one. A wildcard has neither port nor path.
func parseScope(text string) (scope, bool) {
	if wildcardScope.MatchString(text) {
		return scope{host: strings.ToLower(text), wildcard: true}, true
	}
	if !plainScope.MatchString(text) {
		return scope{}, false
	}
	host, path, _ := strings.Cut(text, "/")
	return scope{host: strings.ToLower(host), path: path}, true
}

// imageName is a repository with a tag, a digest or both (github.com/distribution/reference, the grammar of names).
var imageName = regexp.MustCompile(`^(` + hostPattern +
	`(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)+)(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9a-fA-F]{32,})?$`)

// repositoriesOf returns the names of images without tags and digests. Anything else is returned as it is.
func repositoriesOf(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = text
		if parts := imageName.FindStringSubmatch(text); parts != nil {
			out[i] = parts[1]
		}
	}
	return out
}

func (s scope) String() string {
	if s.path == "" {
		return s.host
	}
	return s.host + "/" + s.path
}

// covers reports whether everything in other is in s.
func (s scope) covers(other scope) bool {
	if s.wildcard {
		name, _, _ := strings.Cut(other.host, ":")
		return strings.HasSuffix(name, s.host[1:])
	}
	if s.host != other.host || other.wildcard {
		return false
	}
	return s.path == "" || s.path == other.path || strings.HasPrefix(other.path, s.path+"/")
}

// withoutSuffix returns s without the path at its end: the endpoint X for which the mirror s is X + "/" + path. It
// reports whether there is one.
func (s scope) withoutSuffix(path string) (scope, bool) {
	switch {
	case path == "":
		return s, true
	case s.path == path:
		return scope{host: s.host}, true
	case strings.HasSuffix(s.path, "/"+path):
		return scope{host: s.host, path: strings.TrimSuffix(s.path, "/"+path)}, true
	}
	return scope{}, false
}
