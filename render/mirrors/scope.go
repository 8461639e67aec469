package mirrors

import (
	"regexp"
	"strings"
)

// scope is host[:port][/path], or *.host.
type scope struct {
	// host holds the port; it is lower case, as Windows and DNS compare it.
	host string
	// path is without slashes at its ends, empty for the whole host.
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

// parseScope tells whether text is a scope. A wildcard has neither port nor path.
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

func (s scope) String() string {
	if s.path == "" {
		return s.host
	}
	return s.host + "/" + s.path
}

// covers tells whether everything in other is in s.
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

// without returns s less the path at its end: the endpoint X for which a mirror is X + "/" + path. It tells whether
// there is one.
func (s scope) without(path string) (scope, bool) {
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
