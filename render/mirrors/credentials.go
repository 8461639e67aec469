package mirrors

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// credential is one entry of the pull secret: its name, the same as a key host[/path], and the value of an Authorization header.
type credential struct {
	name   string
	key    string
	header bundle.Secret
}

// dockerAuth is one entry of .dockerconfigjson.
type dockerAuth struct {
	Auth          string `json:"auth"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
}

// parseCredentials reads the pull secret. An invalid entry is reported and left out; the others are used. Findings
// contain no values.
func (in Inputs) parseCredentials() ([]credential, bundle.Findings) {
	text := strings.TrimSpace(in.PullSecret.Reveal())
	if text == "" || in.PullSecret.IsStandIn() {
		return nil, nil
	}
	var file struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if json.Unmarshal([]byte(text), &file) != nil {
		return nil, bundle.Findings{in.badCredential(
			`data[".dockerconfigjson"]`, "is not a JSON object with auths: mirrors get no credentials",
		)}
	}
	var list []credential
	var findings bundle.Findings
	for _, key := range slices.SortedFunc(maps.Keys(file.Auths), compareKeys) {
		header, problem := authorizationHeader(file.Auths[key])
		if problem != "" {
			findings = append(
				findings,
				in.badCredential(
					fmt.Sprintf("auths[%q]", shownKey(key)),
					problem+"; the entry is left out, the others are not affected",
				),
			)
			continue
		}
		list = append(list, credential{name: key, key: credentialKey(key), header: header})
	}
	return list, findings
}

// CredentialsFor returns those of an image in a file of credentials, as base64 of user:password; zero for none. Of several entries that cover the name, the
// longest one counts (github.com/containers/container-libs, containers-auth.json.5.md).
func CredentialsFor(file bundle.Secret, name string) bundle.Secret {
	list, _ := Inputs{PullSecret: file}.parseCredentials()
	host, path, _ := strings.Cut(name, "/")
	return bundle.NewSecret(strings.TrimPrefix(headerFor(list, scope{host: host, path: path}).header.Reveal(), "Basic "))
}

// compareKeys orders keys with a scheme after the others: of two keys for one place, the plain one counts, as in
// containers/image (pkg/docker/config).
func compareKeys(x, y string) int {
	order := func(key string) int { return strings.Count(key, "://") }
	return cmp.Or(cmp.Compare(order(x), order(y)), cmp.Compare(x, y))
}

func (in Inputs) badCredential(field, message string) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityWarning, Reason: reason.PullSecretEntryInvalid, Object: in.PullSecretRef, Field: field, Message: message,
		Fix: "write the entry as {\"auth\": base64 of user:password}",
	}
}

// authorizationHeader returns the header of an entry, or the problem of the entry.
func authorizationHeader(raw json.RawMessage) (bundle.Secret, string) {
	var a dockerAuth
	if json.Unmarshal(raw, &a) != nil {
		return bundle.Secret{}, "is not an object of strings"
	}
	if a.Auth == "" && a.Username == "" && a.IdentityToken == "" {
		return bundle.Secret{}, "holds no user"
	}
	user, password := a.Username, a.Password
	if a.Auth != "" {
		decoded, ok := decodeBase64(a.Auth)
		if !ok {
			return bundle.Secret{}, "auth is not base64"
		}
		if user, password, ok = strings.Cut(decoded, ":"); !ok || user == "" {
			return bundle.Secret{}, "auth is not base64 of user:password"
		}
	}
	// Azure's registries write a user of zeros and no password with the token.
	if a.IdentityToken != "" && (user == "" || password == "") {
		return bundle.Secret{}, "holds an identity token only, which containerd cannot use for a mirror"
	}
	return bundle.NewSecret("Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))), ""
}

// shownKey masks what may be secret in an address: a user and password, which end at the last @, as a password may hold one, and what
// follows a question mark or hash, which no registry has.
func shownKey(key string) string {
	address, query := key, ""
	if i := strings.IndexAny(key, "?#"); i >= 0 {
		address, query = key[:i], key[i:i+1]+bundle.MaskedText
		if strings.Contains(key[i:], "@") {
			return bundle.MaskedText // it is in a password or in a query
		}
	}
	at := strings.LastIndex(address, "@")
	if at < 0 {
		return address + query
	}
	begin := 0
	if i := strings.Index(address[:at], "://"); i >= 0 {
		begin = i + len("://")
	}
	return address[:begin] + bundle.MaskedText + address[at:] + query
}

// digestEnd is the digest of an image, after its name.
var digestEnd = regexp.MustCompile(`@sha256:[0-9a-f]{0,64}$`)

// ShownName is shownKey for what should be a registry, a part of one, or an image. The digest of an image is not masked.
func ShownName(text string) string {
	name := digestEnd.ReplaceAllString(text, "")
	return shownKey(name) + text[len(name):]
}

// decodeBase64 accepts padded and unpadded text.
func decodeBase64(text string) (string, bool) {
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(text), "="))
	return string(data), err == nil
}

const dockerHub = "docker.io"

var apiVersion = regexp.MustCompile(`^v[12]/`)

// credentialKey returns a key as host[/path], without scheme and API version, and with one name for Docker Hub. A
// version follows the host, and a slash after it or a scheme distinguishes it from a namespace (k8s.io/kubernetes
// pkg/credentialprovider, DockerKeyring.Add).
func credentialKey(key string) string {
	plain := strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	host, path, _ := strings.Cut(plain, "/")
	if plain != key {
		path += "/"
	}
	path = strings.Trim(apiVersion.ReplaceAllString(path, ""), "/")
	host = strings.ToLower(host)
	if host == "index.docker.io" || host == "registry-1.docker.io" {
		host = dockerHub
	}
	if path == "" {
		return host
	}
	return host + "/" + path
}

// headerFor returns the credentials for a mirror: those of the longest key that covers it.
func headerFor(list []credential, mirror scope) credential {
	best := credential{}
	for _, c := range list {
		host, path, _ := strings.Cut(c.key, "/")
		key := scope{host: host, path: path}
		if key.covers(scope{host: hubName(mirror.host), path: mirror.path}) && len(c.key) > len(best.key) {
			best = c
		}
	}
	return best
}

func hubName(host string) string {
	if host == "registry-1.docker.io" || host == "index.docker.io" {
		return dockerHub
	}
	return host
}
