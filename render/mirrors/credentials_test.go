package mirrors

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

const odd = `p:"q\ü'€ #`

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// TestCredentials: which user and password a mirror gets, and which entries of the pull secret are reported as invalid.
func TestCredentials(t *testing.T) {
	for name, c := range map[string]struct {
		secret string
		mirror string
		// want is user:password, empty for no header.
		want string
		// bad are the fields of the findings.
		bad []string
	}{
		"the host":                                                        {auths("m.io", encoded("host:1")), "m.io/org/app", "host:1", nil},
		"the longest key":                                                 {auths("m.io", encoded("host:1"), "m.io/org", encoded("org:2"), "m.io/org/app", encoded("app:3")), "m.io/org/app", "app:3", nil},
		"the longest key that covers the mirror":                          {auths("m.io", encoded("host:1"), "m.io/org", encoded("org:2"), "m.io/org/other", encoded("other:3")), "m.io/org/app", "org:2", nil},
		"a key matches whole path segments":                               {auths("m.io/or", encoded("or:1")), "m.io/org", "", nil},
		"a key below the mirror":                                          {auths("m.io/org/app", encoded("app:1")), "m.io/org", "", nil},
		"a key with a slash at its end":                                   {auths("m.io/org/", encoded("org:1")), "m.io/org", "org:1", nil},
		"a host and the same host with a port":                            {auths("m.io", encoded("host:1")), "m.io:5000/org", "", nil},
		"a host with a port":                                              {auths("m.io:5000", encoded("host:1")), "m.io:5000/org", "host:1", nil},
		"hosts that differ in case":                                       {auths("M.IO/org", encoded("org:1")), "m.Io/org", "org:1", nil},
		"a key with a scheme":                                             {auths("https://m.io", encoded("host:1")), "m.io/org", "host:1", nil},
		"a key with a scheme and a path":                                  {auths("https://m.io/org/", encoded("org:1")), "m.io/org/app", "org:1", nil},
		"a key with an API version":                                       {auths("https://m.io/v2/", encoded("host:1")), "m.io/org", "host:1", nil},
		"a key with an API version and a path":                            {auths("https://m.io/v2/org", encoded("org:1")), "m.io/org/app", "org:1", nil},
		"a key whose path ends like an API version":                       {auths("m.io/org/v1", encoded("v1:1")), "m.io/org/app", "", nil},
		"a repository named like an API version":                          {auths("m.io/org/v1", encoded("v1:1")), "m.io/org/v1", "v1:1", nil},
		"a key without a scheme before one with a scheme":                 {auths("https://m.io", encoded("address:1"), "m.io", encoded("host:2")), "m.io/org", "host:2", nil},
		"Docker Hub's URL":                                                {auths("https://index.docker.io/v1/", encoded("hub:1")), "docker.io/library", "hub:1", nil},
		"Docker Hub's URL without the slash at its end":                   {auths("https://index.docker.io/v1", encoded("hub:1")), "docker.io/library", "hub:1", nil},
		"Docker Hub's other names":                                        {auths("registry-1.docker.io", encoded("hub:1")), "docker.io/library", "hub:1", nil},
		"a mirror on Docker Hub's other name":                             {auths("docker.io", encoded("hub:1")), "registry-1.docker.io/library", "hub:1", nil},
		"auth that is not base64":                                         {auths("m.io", "%%%"), "m.io", "", []string{`auths["m.io"]`}},
		"auth without a colon":                                            {auths("m.io", encoded("user")), "m.io", "", []string{`auths["m.io"]`}},
		"auth without a user":                                             {auths("m.io", encoded(":password")), "m.io", "", []string{`auths["m.io"]`}},
		"auth with padding":                                               {auths("m.io", "dXNlcjpwYQ=="), "m.io", "user:pa", nil},
		"auth without padding":                                            {auths("m.io", "dXNlcjpwYQ"), "m.io", "user:pa", nil},
		"auth with a line break at its end":                               {auths("m.io", `dXNlcjpwYQ==\n`), "m.io", "user:pa", nil},
		"invalid entries do not affect the others":                        {auths("a.io", "%%%", "m.io", encoded("host:1"), "z.io", encoded("z")), "m.io", "host:1", []string{`auths["a.io"]`, `auths["z.io"]`}},
		"the credentials of the host where those of the path are invalid": {auths("m.io", encoded("host:1"), "m.io/org", "%%%"), "m.io/org", "host:1", []string{`auths["m.io/org"]`}},
		"an entry that is not an object of strings":                       {`{"auths": {"a.io": 7, "b.io": {"auth": 7}, "m.io": {"auth": "dTpw"}}}`, "m.io", "u:p", []string{`auths["a.io"]`, `auths["b.io"]`}},
		"username and password":                                           {`{"auths": {"m.io": {"username": "user", "password": "pa"}}}`, "m.io", "user:pa", nil},
		"auth before username and password":                               {`{"auths": {"m.io": {"username": "user", "password": "pa", "auth": "dTpw"}}}`, "m.io", "u:p", nil},
		"a password alone":                                                {`{"auths": {"m.io": {"password": "pa"}}}`, "m.io", "", []string{`auths["m.io"]`}},
		"an identity token":                                               {`{"auths": {"m.io": {"identitytoken": "t"}}}`, "m.io", "", []string{`auths["m.io"]`}},
		"an identity token and a user":                                    {`{"auths": {"m.io": {"auth": "` + encoded("0000:") + `", "identitytoken": "t"}}}`, "m.io", "", []string{`auths["m.io"]`}},
		"an identity token and a password":                                {`{"auths": {"m.io": {"auth": "dTpw", "identitytoken": "t"}}}`, "m.io", "u:p", nil},
		"an empty entry":                                                  {`{"auths": {"m.io": {}}}`, "m.io", "", []string{`auths["m.io"]`}},
		"no secret":                                                       {"", "m.io", "", nil},
		"an empty object":                                                 {"{}", "m.io", "", nil},
		"white space":                                                     {" \n", "m.io", "", nil},
		"no auths":                                                        {`{"auths": {}}`, "m.io", "", nil},
		"auths is null":                                                   {`{"auths": null}`, "m.io", "", nil},
		"auths is a list":                                                 {`{"auths": []}`, "m.io", "", []string{`data[".dockerconfigjson"]`}},
		"not JSON":                                                        {`auths: {}`, "m.io", "", []string{`data[".dockerconfigjson"]`}},
		"special characters in auth":                                      {auths("m.io", encoded("user:"+odd)), "m.io", "user:" + odd, nil},
		"special characters in password":                                  {`{"auths": {"m.io": {"username": "user", "password": ` + quoted(odd) + `}}}`, "m.io", "user:" + odd, nil},
		"a password of colons":                                            {auths("m.io", encoded("user:::")), "m.io", "user:::", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := Build(mirrored(c.secret, c.mirror), Options{PartialNever: Closed})
			if len(r.Files) != 1 || len(r.Files[0].Hosts) != 1 {
				t.Fatalf("files: %+v", r.Files)
			}
			want := ""
			if c.want != "" {
				want = "Basic " + encoded(c.want)
			}
			if got := r.Files[0].Hosts[0].Authorization.Reveal(); got != want {
				t.Errorf("header %q, want %q", got, want)
			}
			if diff := cmp.Diff(c.bad, badFields(r.Findings)); diff != "" {
				t.Errorf("bad entries (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRotation: a new password changes the files with that mirror and no others.
func TestRotation(t *testing.T) {
	build := func(password string) map[string]string {
		in := mirrored(auths("m.io", encoded("user:"+password), "n.io", encoded("user:same")), "m.io/x")
		in.Sets = append(in.Sets,
			Set{Kind: TagSet, Source: "both.io", Mirrors: []string{"m.io/y", "n.io/y"}, Policy: NeverContactSource},
			Set{Kind: TagSet, Source: "other.io", Mirrors: []string{"n.io/z"}}, Set{Kind: TagSet, Source: "open.io", Mirrors: []string{"open.example.com"}})
		files := map[string]string{}
		for _, f := range Build(in, Options{PartialNever: Closed}).Files {
			for _, e := range append(f.Hosts, f.Server) {
				files[f.Host] += e.URL + " " + e.Authorization.Reveal() + "\n"
			}
		}
		return files
	}
	first, second := build("one"), build("two")
	var changed []string
	for host, text := range first {
		if second[host] != text {
			changed = append(changed, host)
		}
	}
	slices.Sort(changed)
	if diff := cmp.Diff([]string{"both.io", "s.io"}, changed); diff != "" || len(first) != 4 || len(second) != 4 {
		t.Errorf("%d and %d files, changed (-want +got):\n%s", len(first), len(second), diff)
	}
}

// FuzzCredentials: no secret causes a panic, and no value of a secret appears in a finding.
func FuzzCredentials(f *testing.F) {
	f.Add(auths("m.io", encoded("user:password")), "m.io", "user", "password", uint8(0))
	f.Add(`{"auths": {"": null}}`, "https://index.docker.io/v1/", "", "", uint8(1))
	f.Add(`[`, "m.io/v1/", "a:b", "\x00", uint8(2))
	f.Add(`{"auths": 1}`, "*.io", "ü", `"\`, uint8(3))
	f.Add(`{"auths": {"m.io": {"auth": 1}}}`, "//", "u", ":", uint8(4))
	f.Fuzz(func(t *testing.T, text, key, user, password string, form uint8) {
		// Any text at all: endpoints get a whole header or none.
		for _, file := range Build(mirrored(text, "m.io/org/app"), Options{PartialNever: Closed}).Files {
			for _, e := range file.Hosts {
				checkHeader(t, e.Authorization)
			}
		}
		// An entry whose values are marked.
		const mark = "xyzzy"
		if strings.Contains(key, mark) {
			return
		}
		user, password = mark+user, password+mark
		auth := encoded(user + ":" + password)
		entry := map[string]any{
			"auth": []any{auth, auth + "%", encoded(user + password), encoded(":" + mark + password), 7}[form%5], "username": user, "password": password, "identitytoken": password,
		}
		for i, name := range []string{"auth", "username", "password"} {
			if form>>(5+i)&1 == 1 {
				delete(entry, name)
			}
		}
		data, err := json.Marshal(map[string]any{"auths": map[string]any{key: entry}})
		if err != nil {
			t.Fatal(err)
		}
		r := Build(mirrored(string(data), "m.io/org/app"), Options{PartialNever: Closed})
		shown := fmt.Sprintf("%+v %q", r.Findings, r.Findings)
		for _, secret := range []string{mark, auth, encoded(mark)[:6]} {
			if strings.Contains(shown, secret) {
				t.Fatalf("%q of %s in findings %s", secret, data, shown)
			}
		}
	})
}

// checkHeader fails unless containerd can send the header: user and password, not empty, in one line.
func checkHeader(t *testing.T, header bundle.Secret) {
	t.Helper()
	if header.IsZero() {
		return
	}
	text, basic := strings.CutPrefix(header.Reveal(), "Basic ")
	decoded, err := base64.StdEncoding.DecodeString(text)
	if user, _, ok := strings.Cut(string(decoded), ":"); !basic || err != nil || !ok || user == "" || strings.ContainsAny(text, "\r\n") {
		t.Fatalf("header %q", header.Reveal())
	}
}

// auths returns a secret of keys and their auth fields, which are quoted without escaping.
func auths(pairs ...string) string {
	var list []string
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, fmt.Sprintf(`"%s": {"auth": "%s"}`, pairs[i], pairs[i+1]))
	}
	return `{"auths": {` + strings.Join(list, ", ") + `}}`
}

func quoted(text string) string {
	data, _ := json.Marshal(text)
	return string(data)
}

// mirrored are inputs with the one source s.io.
func mirrored(secret, mirror string) Inputs {
	return Inputs{
		Sets:       []Set{{Kind: DigestSet, Source: "s.io", Mirrors: []string{mirror}}},
		PullSecret: bundle.NewSecret(secret), PullSecretRef: bundle.Ref{Kind: "Secret", Namespace: "openshift-config", Name: "pull-secret"},
	}
}

func badFields(findings bundle.Findings) []string {
	var fields []string
	for _, f := range findings {
		if f.Reason == "PullSecretEntryInvalid" {
			fields = append(fields, f.Field)
		}
	}
	return fields
}

// A password in the place of a registry is refused or left out, and no finding shows it.
func TestPasswordsInRegistriesAreNotShown(t *testing.T) {
	t.Parallel()
	const bad = "user:sesame-mirror@mirror.example/x"
	for _, in := range []Inputs{
		{Sets: []Set{{Kind: DigestSet, Source: "a.example", Mirrors: []string{bad}}}},
		{Sets: []Set{{Kind: DigestSet, Source: bad, Mirrors: []string{"b.example", bad}, Policy: NeverContactSource}}},
		{Sets: []Set{{Source: bad, Policy: NeverContactSource}, {Source: bad, Policy: AllowContactingSource}}},
		{Scopes: Scopes{Insecure: []string{bad, "*" + bad}, Blocked: []string{bad}}},
	} {
		findings := Build(in, Options{PartialNever: Closed}).Findings
		if len(findings) == 0 {
			t.Errorf("%+v: no finding", in)
		}
		for _, f := range findings {
			if strings.Contains(fmt.Sprintf("%+v", f), "sesame") {
				t.Errorf("%s", f.Message)
			}
		}
	}
	for text, want := range map[string]string{
		"quay.io/x@sha256:0123":                       "quay.io/x@sha256:0123",
		"u:sesame@quay.io/x:1@sha256:0123":            bundle.MaskedText + "@quay.io/x:1@sha256:0123",
		"u@sha256:sesame@quay.io":                     bundle.MaskedText + "@quay.io",
		"https://quay.io?token=sesame":                "https://quay.io?" + bundle.MaskedText,
		"https://u:sesame@quay.io/x#sesame":           "https://" + bundle.MaskedText + "@quay.io/x#" + bundle.MaskedText,
		"https://quay.io?next=https://u:open@sesame/": bundle.MaskedText,
		"u:se?same@quay.io":                           bundle.MaskedText,
	} {
		if got := ShownName(text); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
}
