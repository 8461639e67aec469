package render

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/layout"
)

// IsZero reports whether there is no proxy.
func (p Proxy) IsZero() bool { return p.HTTP.IsZero() && p.HTTPS.IsZero() }

// proxyVariable is one variable, with its value for previews.
type proxyVariable struct{ name, value, shown string }

// environmentVariables returns the variables that golang.org/x/net/http/httpproxy, and so every service, reads; none
// without a proxy.
func (p Proxy) environmentVariables() []proxyVariable {
	if p.IsZero() {
		return nil
	}
	noProxy := normalizeNoProxy(p.NoProxy)
	var vars []proxyVariable
	for _, v := range []proxyVariable{
		{layout.VariableHTTP, p.HTTP.Reveal(), maskURL(p.HTTP).Reveal()},
		{layout.VariableHTTPS, p.HTTPS.Reveal(), maskURL(p.HTTPS).Reveal()},
		{layout.VariableNoProxy, noProxy, noProxy},
	} {
		if v.value != "" {
			vars = append(vars, v)
		}
	}
	return vars
}

// maskURL masks the user and password of a proxy URL. A URL without them is not secret.
func maskURL(s bundle.Secret) bundle.Secret {
	scheme, rest, ok := strings.Cut(s.Reveal(), "://")
	if !ok {
		scheme, rest = "", s.Reveal()
	} else {
		scheme += "://"
	}
	authority, path, _ := strings.Cut(rest, "/")
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return s
	}
	shown := scheme + bundle.MaskedText + authority[at:]
	if path != "" {
		shown += "/" + path
	}
	return bundle.NewSecret(shown)
}

// normalizeNoProxy drops blanks, empty and repeated entries, keeps the order, and writes *.x as .x, which is
// httpproxy's form for "every name below x".
func normalizeNoProxy(list string) string {
	var out []string
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		if strings.HasPrefix(entry, "*.") {
			entry = entry[1:]
		}
		if entry != "" && !slices.Contains(out, entry) {
			out = append(out, entry)
		}
	}
	return strings.Join(out, ",")
}

// maxVariable is the longest value of an environment variable, in characters, with its NUL
// (learn.microsoft.com/windows/win32/procthread/environment-variables).
const maxVariable = 32767

func (p Proxy) checkValues(ref bundle.Ref) bundle.Findings {
	if p.IsZero() {
		return nil
	}
	var findings bundle.Findings
	bad := func(field, message, fix string) {
		findings = append(findings, bundle.Finding{
			Severity: bundle.SeverityError, Reason: reason.ProxyInvalid, Object: ref, Field: field, Message: message, Fix: fix,
		})
	}
	for field, secret := range map[string]bundle.Secret{"status.httpProxy": p.HTTP, "status.httpsProxy": p.HTTPS} {
		if secret.IsZero() {
			continue
		}
		u, err := url.Parse(secret.Reveal())
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			bad(
				field, "is not a URL such as http://proxy.example.com:3128",
				"write scheme, host and port; percent-encode special characters of the password",
			)
		}
	}
	if strings.ContainsAny(p.NoProxy, "\r\n\x00") {
		bad("status.noProxy", "contains line breaks", "separate the entries with commas")
	} else if unmatched := slices.DeleteFunc(strings.Split(normalizeNoProxy(p.NoProxy), ","), matchesSomething); len(unmatched) > 0 {
		findings = append(findings, bundle.Finding{
			Severity: bundle.SeverityWarning, Reason: reason.NoProxyUnmatched, Object: ref, Field: "status.noProxy",
			Message: fmt.Sprintf(
				"no destination matches %s, so the destination goes through the proxy",
				bundle.JoinFirst(quoteAll(unmatched), 3, ", ", bundle.AndMore),
			),
			Fix: "write each entry in spec.noProxy as a name, .domain, address or CIDR, separated by commas: 10.0.0.0/16 for 10.0.*",
		})
	}
	if len(p.NoProxy) >= maxVariable {
		bad(
			"status.noProxy", "is longer than the 32766 characters that Windows allows a variable",
			"shorten the list: a domain or CIDR covers many entries",
		)
	}
	return findings
}

// matchesSomething reports whether there can be a destination that an entry of NO_PROXY matches
// (golang.org/x/net/http/httpproxy): all, a CIDR, an address or a name, with an optional port. An entry that is none of
// these is taken for a name there.
func matchesSomething(entry string) bool {
	_, notCIDR := netip.ParsePrefix(entry)
	_, notAddress := netip.ParseAddr(entry)
	_, notPort := netip.ParseAddrPort(entry)
	switch {
	case entry == "", entry == "*", notCIDR == nil, notAddress == nil, notPort == nil:
		return true
	}
	name, port, hasPort := strings.Cut(entry, ":")
	if hasPort && !isDigits(port) {
		return false
	}
	labels := strings.Split(strings.TrimSuffix(strings.TrimPrefix(name, "."), "."), ".")
	if isDigits(labels[len(labels)-1]) {
		return false // a part of an address: addresses match no names
	}
	return !slices.ContainsFunc(labels, func(l string) bool { return l == "" || strings.ContainsFunc(l, isForeignToNames) })
}

func isDigits(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// isForeignToNames reports whether no name of a host has the character. Names may have underscores, and letters of all
// languages.
func isForeignToNames(r rune) bool {
	return r <= unicode.MaxASCII && r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

func quoteAll(list []string) []string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = strconv.Quote(s)
	}
	return quoted
}

// proxyEntries adds the machine variables, for users and other programs, and the environment of the services. The
// service manager gives services the machine variables as they were at boot
// (learn.microsoft.com/windows/win32/procthread/environment-variables), so each service has its own copy, and a change
// of the proxy restarts services instead of the host. Without a proxy the environment exists and is empty, so that
// setting a proxy changes no service's definition.
func (e *emitter) proxyEntries() {
	env := bundle.Environment{Name: proxyEnvironment, Variables: []bundle.Variable{}}
	for _, v := range e.cluster.Proxy.environmentVariables() {
		if r, ok := e.wantedRow(rowVariable); ok {
			e.layer.Variables = append(e.layer.Variables, e.proxyVariable(v.name, v.value, v.shown, r.Impact))
			e.addCauses(r, v.name)
		}
		env.Variables = append(env.Variables, e.proxyVariable(v.name, v.value, v.shown, bundle.ImpactRestart))
	}
	if r, ok := e.wantedRow(rowEnvironment); ok {
		e.layer.Environments = append(e.layer.Environments, env)
		e.addCauses(r, env.Name)
	}
}
