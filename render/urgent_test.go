package render

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/gateway/places"
	"wmco/render/mirrors"
)

// testCA returns a CA that expires on a day.
func testCA(t *testing.T, name, day string) string {
	t.Helper()
	until, err := time.Parse(time.DateOnly, day)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: until.AddDate(-1, 0, 0), NotAfter: until, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func mirrored(user string, sources ...string) mirrors.Inputs {
	in := mirrors.Inputs{PullSecret: bundle.NewSecret(fmt.Sprintf(`{"auths":{"mirror.example.com":{"auth":%q}}}`, base64.StdEncoding.EncodeToString([]byte(user))))}
	for _, s := range sources {
		source, mirror, _ := strings.Cut(s, "=")
		in.Sets = append(in.Sets, mirrors.Set{Kind: mirrors.DigestSet, Source: source, Mirrors: strings.Split(mirror, ",")})
	}
	return in
}

const hostsOfQuay = dirRegistries + `\quay.io\hosts.toml`

func TestUrgent(t *testing.T) {
	old, next, other := testCA(t, "client-signer", "2026-03-01"), testCA(t, "client-signer", "2027-03-01"), testCA(t, "admin-signer", "2026-01-01")
	before := testCluster(bundle.PlatformNone)
	before.KubeletClientCA, before.Mirrors = other+old, mirrored("a:1", "quay.io=mirror.example.com")
	fleet := func(change func(*Cluster)) *Fleet {
		c := before
		change(&c)
		f, findings, err := NewFleet(c, Options{Key: bundle.Key("k")})
		if err != nil || f == nil {
			t.Fatalf("%v, %v", findings, err)
		}
		return f
	}
	has := fleet(func(*Cluster) {}).shared[bundle.StageJoined].layer
	rotated := func(c *Cluster) { c.KubeletClientCA = other + old + next }
	const file = "file "
	for _, tt := range []struct {
		name   string
		change func(*Cluster)
		// want are the entries that are urgent; whole is true if that is all of the change.
		want  []bundle.EntryID
		whole bool
		what  string
	}{
		{"nothing", func(*Cluster) {}, nil, true, ""},
		{"a setting", func(c *Cluster) { c.Settings.Kubelet = []byte(`{"maxPods":7}`) }, nil, false, ""},
		{"the client CA", rotated, []bundle.EntryID{file + fileKubeletCA}, true, "the kubelet client CA (client-signer of the node expires on 2026-03-01)"},
		{"the client CA, a setting and a mirror", func(c *Cluster) {
			rotated(c)
			c.Settings.Kubelet, c.Mirrors = []byte(`{"maxPods":7}`), mirrored("a:1", "quay.io=mirror.example.com", "ghcr.io=mirror.example.com")
		}, []bundle.EntryID{file + fileKubeletCA}, false, "the kubelet client CA (client-signer of the node expires on 2026-03-01)"},
		{"the CA of the API server", func(c *Cluster) { c.Bootstrap.CA = other }, []bundle.EntryID{file + fileBootstrapCA}, true, "the API server CA (kube-apiserver-lb-signer of the node expires on 2045-01-01)"},
		{"the pull secret", func(c *Cluster) { c.Mirrors = mirrored("a:2", "quay.io=mirror.example.com") }, []bundle.EntryID{file + hostsOfQuay, file + filePullCredentials}, true, "the pull secret"},
		{"a mirror", func(c *Cluster) { c.Mirrors = mirrored("a:1", "quay.io=mirror.example.com,other.example.com") }, nil, false, ""},
		{"the pull secret and a mirror", func(c *Cluster) { c.Mirrors = mirrored("a:2", "quay.io=other.example.com,mirror.example.com") }, []bundle.EntryID{file + hostsOfQuay, file + filePullCredentials}, false, "the pull secret"},
		{"both", func(c *Cluster) {
			rotated(c)
			c.Mirrors = mirrored("a:2", "quay.io=mirror.example.com")
		}, []bundle.EntryID{file + hostsOfQuay, file + fileKubeletCA, file + filePullCredentials}, true, "the kubelet client CA (client-signer of the node expires on 2026-03-01) and the pull secret"},
	} {
		f := fleet(tt.change)
		got, err := f.Urgent(has)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		var names []string
		for _, u := range got.Inputs {
			names = append(names, u.String())
		}
		if what := strings.Join(names, " and "); what != tt.what || got.Left != nil {
			t.Errorf("%s: %q, left %q", tt.name, what, got.Left)
		}
		if tt.want == nil {
			if len(got.Layer.Files) > 0 {
				t.Errorf("%s: there is an urgent layer", tt.name)
			}
			continue
		}
		if err := (bundle.Bundle{Cluster: got.Layer, Node: bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerNode, Stage: bundle.StageJoined}}).Check(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, bundle.Differing(bundle.Bundle{Cluster: has}, bundle.Bundle{Cluster: got.Layer})); diff != "" {
			t.Errorf("%s: urgent (-want +got):\n%s", tt.name, diff)
		}
		digest, err := got.Layer.Digest()
		if err != nil {
			t.Fatal(err)
		}
		if whole := digest == f.shared[bundle.StageJoined].digest; whole != tt.whole {
			t.Errorf("%s: all of the change is urgent: %t", tt.name, whole)
		}
	}
}

// TestTheCAThatExpiresFirstIsNamed: of several CAs that are followed by others, the first expiry is named.
func TestTheCAThatExpiresFirstIsNamed(t *testing.T) {
	early, late, other := testCA(t, "early", "2026-01-01"), testCA(t, "late", "2026-03-01"), testCA(t, "other", "2025-01-01")
	nextEarly, nextLate := testCA(t, "early", "2027-01-01"), testCA(t, "late", "2027-03-01")
	same := testCA(t, "also-late", "2026-03-01")
	for _, tt := range []struct{ name, has, wanted, ca, day string }{
		{"both are followed", late + early, late + early + nextLate + nextEarly, "early", "2026-01-01"},
		{"only the later one is followed", early + late, early + late + nextLate, "late", "2026-03-01"},
		{"none is followed by one of its name", late + early, late + early + other, "early", "2026-01-01"},
		{"an earlier one of the same name does not count", testCA(t, "late", "2025-06-01") + late, late + nextLate, "late", "2026-03-01"},
		{"two on the same day, by name", late + same, late + same + other, "also-late", "2026-03-01"},
	} {
		got := firstExpiring(KubeletClientCA, []byte(tt.has), []byte(tt.wanted))
		if got.CA != tt.ca || got.Expires.Format(time.DateOnly) != tt.day {
			t.Errorf("%s: %s expires on %s", tt.name, got.CA, got.Expires.Format(time.DateOnly))
		}
	}
}

func hostsOf(t *testing.T, l bundle.Layer) *bundle.File {
	t.Helper()
	for i := range l.Files {
		if l.Files[i].Path == hostsOfQuay {
			return &l.Files[i]
		}
	}
	t.Fatal("there is no hosts.toml")
	return nil
}

// TestNewCredentialsForTheMirrorsOfANode: a mirror that it does not have stays away, and the order of those that it has is kept.
func TestNewCredentialsForTheMirrorsOfANode(t *testing.T) {
	c := testCluster(bundle.PlatformNone)
	c.Settings.PullSecret = PullSecretMirrorsOnly
	render := func(in mirrors.Inputs) *Fleet {
		c.Mirrors = in
		f, findings, err := NewFleet(c, Options{Key: bundle.Key("k")})
		if err != nil || f == nil {
			t.Fatalf("%v, %v", findings, err)
		}
		return f
	}
	has := render(mirrored("a:1", "quay.io=one.example.com,mirror.example.com")).shared[bundle.StageJoined].layer
	wanted := render(mirrored("a:2", "quay.io=mirror.example.com,two.example.com"))
	got, err := wanted.Urgent(has)
	if err != nil {
		t.Fatal(err)
	}
	old, now := hostsOf(t, has), hostsOf(t, got.Layer)
	want := strings.Replace(string(old.Content.Data), base64.StdEncoding.EncodeToString([]byte("a:1")), base64.StdEncoding.EncodeToString([]byte("a:2")), 1)
	if diff := cmp.Diff(want, string(now.Content.Data)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !now.Secret || !strings.Contains(string(now.Content.Preview), bundle.MaskedText) || strings.Contains(string(now.Content.Preview), "Basic") {
		t.Errorf("the preview is %q", now.Content.Preview)
	}
	foreign := *old
	foreign.Content.Data = append([]byte("# of an older release\n"), old.Content.Data...)
	has.Files = append([]bundle.File{}, has.Files...)
	*hostsOf(t, has) = foreign
	if got, err := wanted.Urgent(has); err != nil || !slices.Equal(got.Left, []string{"quay.io"}) || got.Inputs != nil {
		t.Errorf("a file of another form: %+v, %v", got, err)
	}
}

// TestNewCredentialsForTheGatewayOfANode: it gets them also while other changes of its table wait.
func TestNewCredentialsForTheGatewayOfANode(t *testing.T) {
	c := testCluster(bundle.PlatformNone)
	c.Settings.Mirrors.Mode = mirrors.Exact
	render := func(in mirrors.Inputs) *Fleet {
		c.Mirrors = in
		f, findings, err := NewFleet(c, Options{Key: bundle.Key("k")})
		if err != nil || f == nil {
			t.Fatalf("%v, %v", findings, err)
		}
		return f
	}
	table := func(l bundle.Layer) bundle.File {
		return l.Files[slices.IndexFunc(l.Files, func(f bundle.File) bool { return f.Path == places.File })]
	}
	const part = "quay.io/team=mirror.example.com/team"
	has := render(mirrored("a:1", part)).shared[bundle.StageJoined].layer
	for name, x := range map[string]struct {
		wanted *Fleet
		whole  bool
	}{
		"credentials alone":   {render(mirrored("a:2", part)), true},
		"with another mirror": {render(mirrored("a:2", part, "ghcr.io/team=mirror.example.com/team")), false},
	} {
		got, err := x.wanted.Urgent(has)
		if err != nil {
			t.Fatal(err)
		}
		old, now, want := table(has), table(got.Layer), table(x.wanted.shared[bundle.StageJoined].layer)
		text := strings.Replace(string(old.Content.Data), base64.StdEncoding.EncodeToString([]byte("a:1")), base64.StdEncoding.EncodeToString([]byte("a:2")), 1)
		if diff := cmp.Diff(text, string(now.Content.Data)); diff != "" || (text == string(want.Content.Data)) != x.whole {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if !now.Secret || !strings.Contains(string(now.Content.Preview), bundle.MaskedText) || strings.Contains(string(now.Content.Preview), `"auth": "Y`) {
			t.Errorf("%s: the preview is %q", name, now.Content.Preview)
		}
	}
	foreign := has
	foreign.Files = slices.DeleteFunc(slices.Clone(has.Files), func(f bundle.File) bool { return f.Path == filePullCredentials })
	foreign.Files[slices.IndexFunc(foreign.Files, func(f bundle.File) bool { return f.Path == places.File })].Content.Data = []byte(`{"schema": 0}`)
	for name, l := range map[string]bundle.Layer{"the same credentials": render(mirrored("a:2", part)).shared[bundle.StageJoined].layer, "a table of another form": foreign} {
		if got, err := render(mirrored("a:2", part, "ghcr.io/team=mirror.example.com/team")).Urgent(l); err != nil || got.Inputs != nil {
			t.Errorf("%s: %+v, %v", name, got.Inputs, err)
		}
	}
}

// TestHostsFilesCanBeRead: reading is the inverse of the template.
func TestHostsFilesCanBeRead(t *testing.T) {
	set, err := parseTemplates()
	if err != nil {
		t.Fatal(err)
	}
	plain := mirrors.Endpoint{URL: "https://b.example.com/v2", Capabilities: []mirrors.Capability{mirrors.Pull}}
	full := mirrors.Endpoint{
		URL: "https://a.example.com/v2/\"x\"", Capabilities: []mirrors.Capability{mirrors.Pull, mirrors.Resolve}, SkipVerify: true, Authorization: bundle.NewSecret("Basic eA=="),
	}
	for name, f := range map[string]mirrors.HostsFile{
		"allowed": {}, "a server": {Server: plain}, "a server with credentials": {Server: full},
		"hosts": {Hosts: []mirrors.Endpoint{plain, full}}, "all": {Server: full, Hosts: []mirrors.Endpoint{full, plain}},
	} {
		content, err := hostsContent(set, f)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseHosts(content.Data)
		if diff := cmp.Diff(f, got, cmp.Comparer(func(a, b bundle.Secret) bool { return a == b })); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if _, err := parseHosts([]byte("header = \"Basic c2VjcmV0\"\n[")); err == nil || strings.Contains(err.Error(), "c2VjcmV0") {
		t.Errorf("what is no TOML: %v", err)
	}
}
