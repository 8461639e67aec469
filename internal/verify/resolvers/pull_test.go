package resolvers

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/internal/test/registrytest/distribution"
	"wmco/render/mirrors"
)

const (
	user, password = "reader", "secret"
	// passwordFile is an htpasswd file for them (bcrypt, lowest cost).
	passwordFile = "reader:$2b$04$Ep5Vnxog7SmYsN6kPFgwAusoPSMl0s3sZI8pW88x77fzm8sPa.apq\n"
)

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// stores are the registries of all pulls: the source and two sets of mirrors.
type stores struct {
	source, one, two storage
	// locked, tokened and secured are registries over one, with passwords, with tokens, with TLS of their own.
	locked, tokened, secured string
	signer                   authority
}

func newStores(t *testing.T) stores {
	t.Helper()
	distribution.NeedRegistry(t)
	s := stores{source: newStorage(t), one: newStorage(t), two: newStorage(t)}
	directory := t.TempDir()
	write := func(name string, data []byte) string {
		file := filepath.Join(directory, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	s.locked = over(t, s.one, distribution.Options{Auth: "htpasswd: {realm: realm.test, path: " + write("htpasswd", []byte(passwordFile)) + "}"})
	var err error
	if s.signer, err = newAuthority("tokens"); err != nil {
		t.Fatal(err)
	}
	s.tokened = over(t, s.one, distribution.Options{
		Auth: `token: {realm: "https://tokens.test/token", service: registry.test, issuer: issuer.test, rootcertbundle: ` + write("tokens.pem", s.signer.pem()) + "}",
	})
	cert, key := machineCA.server(t, "secured.test")
	s.secured = over(t, s.one, distribution.Options{Certificate: cert, Key: key})

	s.source.push(t, "app/img", "app")
	s.source.push(t, "app/only", "only")
	s.source.push(t, "library/img", "hub")
	s.one.push(t, "app/img", "app")
	s.one.push(t, "org/app/img", "app")
	s.one.push(t, "hub/library/img", "hub")
	s.two.push(t, "app/img", "app")
	return s
}

// over starts another registry with the images of a storage, and returns its address.
func over(t *testing.T, s storage, o distribution.Options) string {
	t.Helper()
	o.Folder = s.directory
	return distribution.Start(t, o).Address
}

// world is the network of most pulls: a source and mirrors of all kinds. The source has every image, one.test and
// two.test have app/img, hub.test has Docker Hub's below hub.
func world(t *testing.T, s stores) *network {
	n := newNetwork(t)
	n.registry("source.test", trusted, s.source.plain)
	n.registry("registry-1.docker.io", trusted, s.source.plain)
	n.registry("source.test:8443", trusted, s.source.plain)
	n.registry("source.test:8080", plainHTTP, s.source.plain)
	n.registry("one.test", trusted, s.one.plain)
	n.registry("two.test:5000", trusted, s.two.plain)
	n.registry("empty.test", trusted, newEmpty(t, s))
	n.registry("plain.test:5000", plainHTTP, s.one.plain)
	n.registry("strange.test", untrusted, s.one.plain)
	n.registry("locked.test", trusted, s.locked)
	n.registry("tokened.test", trusted, s.tokened)
	n.serve("tokens.test", trusted, tokens{signer: s.signer, user: user, password: password})
	n.addresses["secured.test:443"] = s.secured
	n.down("down.test")
	return n
}

// newEmpty returns a registry without the images: two of them are in one, under names that no pull uses.
func newEmpty(t *testing.T, _ stores) string {
	return distribution.Start(t, distribution.Options{}).Address
}

// pull is a pull that a test makes with every version of containerd.
type pull struct {
	name string
	in   mirrors.Inputs
	// image is pulled by its tag 1, or by the digest of the image with this label.
	image, label string
	by           By
	// contacted are the registries that were contacted, in order; served are those that served contents, sorted.
	contacted, served string
	// fails is true if the pull must fail.
	fails bool
}

// Pulls of real images from real registries through rendered hosts files use the places in the mirror sets.
func TestPulls(t *testing.T) {
	s := newStores(t)
	n := world(t, s)
	two := func(policy mirrors.Policy, list ...string) mirrors.Inputs {
		return inputs(set(idms, "source.test", policy, list...), set(itms, "source.test", policy, list...))
	}
	one := []string{"one.test"}
	tests := []pull{
		{name: "no mirrors", in: inputs(), contacted: "source.test", served: "source.test"},
		{name: "the first mirror", in: two("", "one.test", "two.test:5000"), contacted: "one.test", served: "one.test"},
		{name: "the first mirror, in the other order", in: two("", "two.test:5000", "one.test"), contacted: "two.test:5000", served: "two.test:5000"},
		{name: "the next mirror when the first is down", in: two("", "down.test", "two.test:5000"), contacted: "two.test:5000", served: "two.test:5000"},
		{name: "the next mirror when the first lacks the image", in: two("", "empty.test", "two.test:5000"), contacted: "empty.test two.test:5000", served: "two.test:5000"},
		{name: "the next mirror when the first has an unknown CA", in: two("", "strange.test", "two.test:5000"), contacted: "strange.test two.test:5000", served: "two.test:5000"},
		{name: "an insecure mirror with an unknown CA", in: scoped(two("", "strange.test"), []string{"strange.test"}, nil, nil), contacted: "strange.test", served: "strange.test"},
		{name: "an insecure mirror without TLS", in: scoped(two("", "plain.test:5000"), []string{"plain.test:5000"}, nil, nil), contacted: "plain.test:5000", served: "plain.test:5000"},
		{name: "an insecure mirror without TLS, policy Never", in: scoped(two(never, "plain.test:5000"), []string{"plain.test:5000"}, nil, nil), contacted: "plain.test:5000", served: "plain.test:5000"},
		{name: "a mirror without TLS that is not insecure", in: two("", "plain.test:5000", "two.test:5000"), contacted: "plain.test:5000 two.test:5000", served: "two.test:5000"},
		{name: "the source last", in: two("", "empty.test", "down.test"), contacted: "empty.test source.test", served: "source.test"},
		{name: "policy Never, a mirror has the image", in: two(never, "empty.test", "one.test"), contacted: "empty.test one.test", served: "one.test"},
		{name: "policy Never, no mirror has the image", in: two(never, "empty.test", "down.test"), contacted: "empty.test", fails: true},
		{name: "policy Never, all mirrors down", in: two(never, "down.test"), fails: true},
		{name: "policy Never for a part of the source", in: inputs(set(idms, "source.test/app", never, "empty.test/app")), contacted: "empty.test", by: Digest, fails: true},
		{name: "a mirror below a path", in: two("", "one.test/org"), contacted: "one.test", served: "one.test"},
		{name: "a mirror of a part", in: inputs(set(idms, "source.test/app", "", "one.test/org/app"), set(itms, "source.test/app", "", "one.test/org/app")), contacted: "one.test", served: "one.test"},
		{name: "an image outside of the part is looked for in the mirror, then in the source", in: inputs(set(itms, "source.test/library", "", "one.test/library")), contacted: "one.test source.test", served: "source.test", image: "source.test/app/only", label: "only"},
		{name: "mirrors for digests, pulled by digest", in: inputs(set(idms, "source.test", "", one...)), by: Digest, contacted: "one.test", served: "one.test"},
		// The source resolves the tag to a digest, which is then pulled from the mirror.
		{name: "mirrors for digests, pulled by tag", in: inputs(set(idms, "source.test", "", one...)), by: Tag, contacted: "source.test one.test", served: "one.test"},
		{name: "mirrors for digests, pulled by tag, policy Never", in: inputs(set(idms, "source.test", never, one...)), by: Tag, fails: true},
		{name: "mirrors for tags, pulled by tag", in: inputs(set(itms, "source.test", "", one...)), by: Tag, contacted: "one.test", served: "one.test"},
		{name: "mirrors for tags, pulled by tag, policy Never", in: inputs(set(itms, "source.test", never, one...)), by: Tag, contacted: "one.test", served: "one.test"},
		{name: "a source with a port", in: inputs(set(idms, "source.test:8443", "", "empty.test"), set(itms, "source.test:8443", "", "empty.test"), set(itms, "source.test", never, "one.test")),
			image: "source.test:8443/app/img", contacted: "empty.test source.test:8443", served: "source.test:8443"},
		{name: "an insecure source", in: scoped(inputs(), []string{"source.test:8080"}, nil, nil), image: "source.test:8080/app/img", contacted: "source.test:8080", served: "source.test:8080"},
		{name: "a source without TLS that is not insecure", in: inputs(), image: "source.test:8080/app/img", contacted: "source.test:8080", fails: true},
		{name: "a mirror, then an insecure source", in: scoped(inputs(set(idms, "source.test:8080", "", "empty.test"), set(itms, "source.test:8080", "", "empty.test")), []string{"source.test:8080"}, nil, nil),
			image: "source.test:8080/app/img", contacted: "empty.test source.test:8080", served: "source.test:8080"},
		{name: "Docker Hub from a mirror", in: inputs(set(idms, "docker.io", never, "one.test/hub"), set(itms, "docker.io", never, "one.test/hub")), image: "docker.io/library/img", label: "hub", contacted: "one.test", served: "one.test"},
		{name: "Docker Hub itself", in: inputs(set(idms, "docker.io", "", "empty.test"), set(itms, "docker.io", "", "empty.test")), image: "docker.io/library/img", label: "hub", contacted: "empty.test registry-1.docker.io", served: "registry-1.docker.io"},
		{name: "a blocked registry", in: scoped(inputs(), nil, []string{"source.test"}, nil), fails: true},
		{name: "a blocked registry with a mirror", in: scoped(two("", "one.test"), nil, []string{"source.test"}, nil), contacted: "one.test", served: "one.test"},
		{name: "a registry that is not allowed", in: scoped(inputs(), nil, nil, []string{"one.test"}), fails: true},
		{name: "a registry that is allowed", in: scoped(inputs(), nil, nil, []string{"source.test"}), contacted: "source.test", served: "source.test"},
		{name: "a mirror whose password is not available", in: two("", "locked.test", "two.test:5000"), contacted: "locked.test two.test:5000", served: "two.test:5000"},
	}
	for _, test := range tests {
		for _, by := range []By{Digest, Tag} {
			if test.by == "" || test.by == by {
				t.Run(test.name+", by "+string(by), func(t *testing.T) { n.check(t, test, by) })
			}
		}
	}
}

func (n *network) check(t *testing.T, test pull, by By) {
	files, findings, err := Render(test.in, mirrors.Closed)
	if err != nil || findings.Refused() {
		t.Fatalf("%v %+v", err, findings)
	}
	i, err := NewImage(or(test.label, "app"))
	if err != nil {
		t.Fatal(err)
	}
	ref := or(test.image, "source.test/app/img")
	if by == Digest {
		ref += "@" + i.Digest().String()
	} else {
		ref += ":1"
	}
	for _, e := range Engines() {
		pulled, err := e.Pull(t.Context(), n.client(files), ref)
		r := n.take()
		if (err != nil) != test.fails {
			t.Errorf("%s: %v", e.Version, err)
		}
		if err == nil {
			want := Pulled{Digest: i.Digest(), Blobs: []string{string(i.Config), string(i.Layer)}}
			if diff := cmp.Diff(want, pulled); diff != "" {
				t.Errorf("%s (-want +got):\n%s", e.Version, diff)
			}
		}
		if diff := cmp.Diff([]string{test.contacted, test.served}, []string{r.contacted(), r.served()}); diff != "" {
			t.Errorf("%s: contacted and served (-want +got):\n%s", e.Version, diff)
		}
		host, _, _ := strings.Cut(ref, "/")
		for _, x := range r {
			if strings.Contains(x.path, "/v2/") && x.name != host && x.query != "ns="+strings.ReplaceAll(host, ":", "%3A") && x.name != "registry-1.docker.io" {
				t.Errorf("%s: %s got no parameter with the registry of the image: %q", e.Version, x.name, x.query)
			}
		}
	}
	complaints.take() // TestPullsMatchOpenShift checks these
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// The same on loopback addresses with ports, without name resolution.
func TestPullsOnLoopbackAddresses(t *testing.T) {
	distribution.NeedRegistry(t)
	source, store := newStorage(t), newStorage(t)
	source.push(t, "app/img", "app")
	store.push(t, "app/img", "app")
	n := newNetwork(t)
	free := func(ip string) string {
		listener, err := net.Listen("tcp", ip+":0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		return listener.Addr().String()
	}
	from, first, second := free("127.0.0.2"), free("127.0.0.3"), free("127.0.0.4")
	n.registry(from, plainHTTP, source.plain)
	n.registry(first, plainHTTP, store.plain)
	n.down(second)
	for _, test := range []pull{
		{name: "first mirror", in: inputs(set(itms, from, never, first)), contacted: first, served: first},
		{name: "second mirror", in: inputs(set(itms, from, never, second, first)), contacted: first, served: first},
		{name: "source", in: inputs(set(itms, from, "", second)), contacted: from, served: from},
		{name: "policy Never", in: inputs(set(itms, from, never, second)), fails: true},
	} {
		test.image = from + "/app/img"
		test.in.Scopes.Insecure = []string{from, first, second}
		t.Run(test.name, func(t *testing.T) { n.check(t, test, Tag) })
	}
}

// A mirror gets the credentials that the cluster has for it, once, and no other registry gets them.
func TestCredentials(t *testing.T) {
	n := world(t, newStores(t))
	secret := func(keys ...string) string {
		var auths []string
		for _, k := range keys {
			auths = append(auths, fmt.Sprintf(`%q:{"auth":%q}`, k, base64.StdEncoding.EncodeToString([]byte(user+":"+password))))
		}
		return `{"auths":{` + strings.Join(auths, ",") + `}}`
	}
	const source = "source.test"
	tests := []struct {
		name   string
		policy mirrors.Policy
		mirror string
		secret string
		// served are the registries that serve the image in 2.4.2, old in 1.7.27 if those differ.
		served, old string
		// got are the headers of the mirror and of the source in 2.4.2; Bearer stands for any token.
		got, source []string
	}{
		{name: "password", mirror: "locked.test", secret: secret("locked.test"), served: "locked.test", got: []string{basic(user, password)}},
		{name: "password, policy Never", policy: never, mirror: "locked.test", secret: secret("locked.test"), served: "locked.test", got: []string{basic(user, password)}},
		{name: "password for a part of the mirror", mirror: "locked.test/org", secret: secret("locked.test/org"), served: "locked.test", got: []string{basic(user, password)}},
		{name: "password for another part", mirror: "locked.test/org", secret: secret("locked.test/or"), served: source, got: []string{""}, source: []string{""}},
		{name: "token", mirror: "tokened.test", secret: secret("tokened.test"), served: "tokened.test tokens.test", old: "source.test tokens.test", got: []string{basic(user, password), "Bearer"}},
		{name: "token, without credentials", mirror: "tokened.test", secret: secret("other.test"), served: "source.test tokens.test", got: []string{"", "Bearer"}, source: []string{""}},
		{name: "mirror without authentication", mirror: "one.test", secret: secret("source.test"), served: "one.test", got: []string{""}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := inputs(set(itms, source, test.policy, test.mirror))
			in.PullSecret, in.PullSecretRef = bundle.NewSecret(test.secret), bundle.Ref{Kind: "Secret", Name: "pull-secret"}
			files, findings, err := Render(in, mirrors.Closed)
			if err != nil || findings.Refused() {
				t.Fatalf("%v %+v", err, findings)
			}
			for _, e := range Engines() {
				_, err := e.Pull(t.Context(), n.client(files), source+"/app/img:1")
				r := n.take()
				if err != nil {
					t.Errorf("%s: %v", e.Version, err)
				}
				served := test.served
				if e.Version == "1.7.27" {
					served = or(test.old, served)
				}
				if diff := cmp.Diff(served, r.served()); diff != "" {
					t.Errorf("%s: served (-want +got):\n%s", e.Version, diff)
				}
				if e.Version == "1.7.27" && test.old != "" {
					continue
				}
				host, _, _ := strings.Cut(test.mirror, "/")
				if diff := cmp.Diff([][]string{test.got, test.source}, [][]string{masked(r.authorizations(host)), masked(r.authorizations(source))}); diff != "" {
					t.Errorf("%s: headers of the mirror and of the source (-want +got):\n%s", e.Version, diff)
				}
			}
		})
	}
}

// masked returns headers without their tokens.
func masked(headers []string) []string {
	var list []string
	for _, h := range headers {
		if strings.HasPrefix(h, "Bearer ") && !strings.Contains(h, " and ") {
			h = "Bearer"
		}
		if len(list) == 0 || list[len(list)-1] != h {
			list = append(list, h)
		}
	}
	return list
}

// The kubelet passes the credentials of the image, and containerd sends them to every server that answers with a challenge,
// including mirrors and their token servers. A mirror with a password gets its own header and sends no challenge; a token
// server gets both. No hosts file can change that, which is why OpenShift's documentation asks for global pull secrets.
func TestKubeletsCredentials(t *testing.T) {
	n := world(t, newStores(t))
	for mirror, leaks := range map[string]bool{"locked.test": false, "tokened.test": true} {
		in := inputs(set(itms, "source.test", "", mirror))
		in.PullSecret = bundle.NewSecret(fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, mirror, base64.StdEncoding.EncodeToString([]byte(user+":"+password))))
		files, _, err := Render(in, mirrors.Closed)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range Engines() {
			c := n.client(files)
			c.Credentials = func(string) (string, string, error) { return "source-user", "source-password", nil }
			if _, err := e.Pull(t.Context(), c, "source.test/app/img:1"); err != nil {
				t.Errorf("%s: %v", e.Version, err)
			}
			r := n.take()
			for _, header := range r.authorizations(mirror) {
				if header != basic(user, password) && !strings.HasPrefix(header, "Bearer ") {
					t.Errorf("%s: %s got %q", e.Version, mirror, header)
				}
			}
			if leaked := slices.ContainsFunc(r, func(x request) bool { return x.user == "source-user" }); leaked != leaks {
				t.Errorf("%s: %s: the token server saw kubelet's user: %t", e.Version, mirror, leaked)
			}
		}
	}
}

// Two mirrors can collapse to one endpoint, which has one header. If each has its own credentials, one of them is not used,
// which must be a finding.
func TestUnusedCredentialsAreFindings(t *testing.T) {
	tests := map[string]struct {
		in     mirrors.Inputs
		secret string
	}{
		"of two parts of one mirror": {
			in:     inputs(set(itms, "s.io/a", "", "m.io/a"), set(itms, "s.io/b", "", "m.io/b")),
			secret: `{"auths":{"m.io/a":{"auth":"YTph"},"m.io/b":{"auth":"Yjpi"}}}`,
		},
		"of a part of a mirror": {
			in:     inputs(set(itms, "s.io", "", "m.io")),
			secret: `{"auths":{"m.io/team":{"auth":"YTph"}}}`,
		},
	}
	for name, test := range tests {
		test.in.PullSecret, test.in.PullSecretRef = bundle.NewSecret(test.secret), bundle.Ref{Kind: "Secret", Name: "pull-secret"}
		files, findings, err := Render(test.in, mirrors.Closed)
		if err != nil || findings.Refused() {
			t.Fatalf("%v %+v", err, findings)
		}
		if !slices.ContainsFunc(findings, func(f bundle.Finding) bool { return f.Object == test.in.PullSecretRef }) {
			t.Errorf("%s: no finding about the pull secret\n%s\n%+v", name, files["s.io"], findings)
		}
	}
}

// A registry with its own TLS instead of the proxy of the other tests.
func TestPullFromARegistryWithItsOwnTLS(t *testing.T) {
	n := world(t, newStores(t))
	n.check(t, pull{in: inputs(set(itms, "source.test", never, "secured.test"))}, Tag)
}
