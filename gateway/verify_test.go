package gateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"wmco/gateway"
	"wmco/gateway/places"
	"wmco/gateway/registry"
	"wmco/gateway/signatures"
)

// addIndex adds an index of images under a tag and its digest, and returns the digest.
func (s *store) addIndex(repository, tag string, digests ...string) string {
	var list []map[string]string
	for _, d := range digests {
		list = append(list, map[string]string{"digest": d})
	}
	data, _ := json.Marshal(map[string]any{"manifests": list}) // strings
	d := digest.FromBytes(data).String()
	s.add(repository+"/manifests/"+tag, data)
	s.add(repository+"/manifests/"+d, data)
	return d
}

// sign attaches signatures to what has a digest. Each is the name for which it is signed.
func (s *store) sign(repository, of string, names ...string) {
	var layers []map[string]any
	for _, n := range names {
		payload := []byte(n)
		d := digest.FromBytes(payload).String()
		s.add(repository+"/blobs/"+d, payload)
		layers = append(layers, map[string]any{"mediaType": signatures.MediaType, "digest": d, "annotations": map[string]string{"is": n}})
	}
	layers = append(layers, map[string]any{"mediaType": "application/vnd.in-toto+json", "digest": "sha256:none"})
	data, _ := json.Marshal(map[string]any{"layers": layers}) // strings
	s.add(repository+"/manifests/"+strings.Replace(of, ":", "-", 1)+".sig", data)
}

// signedTable has a policy for quay.io/team, one for a tag in it, and one for another part.
func signedTable() places.Table {
	t := mirrored(false, []string{"a.io/m"}, []string{"a.io/m"})
	policy := func(scope, object string) places.Policy {
		return places.Policy{Scope: scope, Objects: []string{object}, Requirements: []places.Requirement{{Type: places.SigstoreSigned, SignedIdentity: places.Identity{Type: object}}}}
	}
	t.Policies = []places.Policy{policy("quay.io/team", "ClusterImagePolicy/team"), policy("quay.io/team/app:strict", "ClusterImagePolicy/strict"), policy("quay.io/else", "ClusterImagePolicy/else")}
	return t
}

// bySignatures accepts an image that has a signature for its name and policy.
func bySignatures(q signatures.Question) (signatures.Answer, error) {
	var policy struct{ Default []places.Requirement }
	if err := json.Unmarshal(q.Policy, &policy); err != nil {
		return signatures.Answer{}, err
	}
	want := q.Image + " " + policy.Default[0].SignedIdentity.Type
	if slices.ContainsFunc(q.Signatures, func(s signatures.Signature) bool {
		return string(s.Payload) == want && s.Annotations["is"] == want && s.MIMEType == signatures.MediaType
	}) {
		return signatures.Answer{Accepted: true}, nil
	}
	return signatures.Answer{Reason: "not signed as " + want}, nil
}

// TestOnlySignedImagesArePassedOn, by tag, by digest, and in an index.
func TestOnlySignedImagesArePassedOn(t *testing.T) {
	t.Parallel()
	i, other := newImage("a"), newImage("b")
	const team = " ClusterImagePolicy/team"
	for name, c := range map[string]struct {
		// signed are the names and policies for which i is signed at the mirror.
		signed []string
		// pull are the requests, of which the last one is refused unless refused is empty.
		pull    []string
		refused string
	}{
		"a tag":                      {[]string{"quay.io/team/app:v1" + team}, []string{"HEAD v1", "GET " + i.digest()}, ""},
		"a tag that is not signed":   {nil, []string{"HEAD v1"}, "quay.io/team/app:v1 is not pulled: a.io/m/app: refused by ClusterImagePolicy/team: not signed as quay.io/team/app:v1" + team},
		"signed for another tag":     {[]string{"quay.io/team/app:v2" + team}, []string{"HEAD v1"}, "ClusterImagePolicy/team"},
		"a digest":                   {[]string{"quay.io/team/app@" + i.digest() + team}, []string{"HEAD " + i.digest(), "GET " + i.digest()}, ""},
		"a digest, not signed":       {nil, []string{"GET " + i.digest()}, "ClusterImagePolicy/team"},
		"one of several signatures":  {[]string{"x", "quay.io/team/app:v1" + team, "y"}, []string{"GET v1"}, ""},
		"an index, by its tag":       {[]string{"quay.io/team/app:all" + team}, []string{"HEAD all", "GET all", "GET " + i.digest()}, ""},
		"an index of unsigned ones":  {nil, []string{"HEAD all", "GET all", "GET " + i.digest()}, "ClusterImagePolicy/team: not signed as quay.io/team/app:all"},
		"another one of the index":   {[]string{"quay.io/team/app:all" + team}, []string{"GET all", "GET " + other.digest()}, "ClusterImagePolicy/team"},
		"a policy for the tag alone": {[]string{"quay.io/team/app:strict" + team}, []string{"HEAD strict"}, "ClusterImagePolicy/strict"},
		"the same, satisfied":        {[]string{"quay.io/team/app:strict ClusterImagePolicy/strict"}, []string{"HEAD strict", "GET " + i.digest()}, ""},
		"the index of that tag":      {[]string{"quay.io/team/app:all" + team}, []string{"GET strict-index", "GET " + i.digest()}, "ClusterImagePolicy/team"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mirror, source := newStore().addImage("m/app", i, "v1", "strict").addImage("m/app", other), newStore().addImage("team/app", i, "v1", "strict")
			all := mirror.addIndex("m/app", "all", i.digest(), other.digest())
			mirror.addIndex("m/app", "strict-index", i.digest())
			mirror.sign("m/app", i.digest(), c.signed...)
			source.sign("team/app", i.digest(), "quay.io/team/app:v1"+team, "quay.io/team/app@"+i.digest()+team, "quay.io/team/app@"+all+team)
			f := newFixture(t, network{"a.io": mirror, "quay.io": source}, signedTable())
			f.signed = bySignatures
			for n, request := range c.pull {
				method, reference, _ := strings.Cut(request, " ")
				w := f.ask(method, "team/app/manifests/"+reference)
				isRefused := c.refused != "" && n == len(c.pull)-1
				if isRefused != (w.Code == http.StatusForbidden) || isRefused != strings.Contains(w.Body.String(), c.refused) && isRefused || !isRefused && w.Code != http.StatusOK {
					t.Fatalf("%s: %d %s", request, w.Code, w.Body)
				}
				if method == http.MethodHead && !isRefused && w.Body.Len() > 0 {
					t.Errorf("%s: a body: %s", request, w.Body)
				}
			}
			if len(source.asked) > 0 {
				t.Errorf("the first place had it, and the source was asked %v", source.asked)
			}
		})
	}
}

// TestVerdictsAreKept for the image and policy that they are about, and those against an image are not.
func TestVerdictsAreKept(t *testing.T) {
	t.Parallel()
	i := newImage("a")
	mirror := newStore().addImage("m/app", i, "v1")
	f := newFixture(t, network{"a.io": mirror, "quay.io": newStore()}, signedTable())
	f.signed = bySignatures
	ask := func(want, questions int) {
		t.Helper()
		if w := f.ask(http.MethodGet, "team/app/manifests/v1"); w.Code != want || len(f.questions) != questions {
			t.Errorf("%d after %d questions, want %d after %d: %s", w.Code, len(f.questions), want, questions, w.Body)
		}
	}
	ask(403, 1)
	ask(403, 2)
	mirror.sign("m/app", i.digest(), "quay.io/team/app:v1 ClusterImagePolicy/team", "quay.io/team/app:v1 ClusterImagePolicy/later")
	ask(200, 3)
	f.login(t, "")
	ask(200, 3)
	table := signedTable()
	table.Policies[0].Requirements[0].SignedIdentity.Type = "ClusterImagePolicy/later"
	f.SetTable(table)
	ask(200, 4)
	table.Policies[0].Requirements[0].SignedIdentity.Type = "ClusterImagePolicy/last"
	f.SetTable(table)
	ask(403, 5)
	table.Policies = nil
	f.SetTable(table)
	ask(200, 5)
}

// TestWithoutAVerdictNothingIsPassedOn: a place whose signatures cannot be read is passed over, as one that does not answer.
func TestWithoutAVerdictNothingIsPassedOn(t *testing.T) {
	t.Parallel()
	i := newImage("a")
	signature := strings.Replace(i.digest(), ":", "-", 1) + ".sig"
	name := "quay.io/team/app@" + i.digest() + " ClusterImagePolicy/team"
	for what, c := range map[string]struct {
		change func(mirror *store)
		err    error
		code   int
		text   string
	}{
		"the program fails":               {nil, errors.New("exit status 1"), 502, "verifying its signatures: exit status 1"},
		"no manifest of signatures":       {func(m *store) { m.add("m/app/manifests/"+signature, []byte("[]")) }, nil, 200, ""},
		"a manifest of another type":      {func(m *store) { m.add("m/app/manifests/"+signature, []byte(`{"mediaType":"application/x"}`)) }, nil, 200, ""},
		"a signature is missing":          {func(m *store) { delete(m.content, "/v2/m/app/blobs/"+digest.FromString(name).String()) }, nil, 200, ""},
		"a signature with another digest": {func(m *store) { m.add("m/app/blobs/"+digest.FromString(name).String(), []byte("other")) }, nil, 200, ""},
		"a signature that is too large":   {func(m *store) { m.add("m/app/blobs/"+digest.FromString(name).String(), make([]byte, 5<<20)) }, nil, 200, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			mirror, source := newStore().addImage("m/app", i), newStore().addImage("team/app", i)
			mirror.sign("m/app", i.digest(), name)
			source.sign("team/app", i.digest(), name)
			if c.change != nil {
				c.change(mirror)
			}
			f := newFixture(t, network{"a.io": mirror, "quay.io": source}, signedTable())
			f.signed = func(q signatures.Question) (signatures.Answer, error) {
				if c.err != nil {
					return signatures.Answer{Accepted: true}, c.err
				}
				return bySignatures(q)
			}
			if w := f.ask(http.MethodGet, "team/app/manifests/"+i.digest()); w.Code != c.code || !strings.Contains(w.Body.String(), c.text) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

// TestWhatIsNoPlainIndexIsVerified: containerd reads a manifest by the type that its index or its registry gives, not by what it is.
func TestWhatIsNoPlainIndexIsVerified(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"manifests":[],"config":{"digest":"sha256:0"}}`, `{"manifests":[],"Layers":[]}`, `{"manifests":[],"layers":null}`, `{"Manifests":[],"CONFIG":{}}`, `{"manifests":[],"fsLayers":[]}`, `{"manifests":[],"layer\u017f":[]}`,
		`{"manifests":null}`, `{"manifests":{}}`, `{}`, `[]`, `not JSON`,
	} {
		mirror := newStore()
		mirror.add("m/app/manifests/v1", []byte(text))
		f := newFixture(t, network{"a.io": mirror, "quay.io": newStore()}, signedTable())
		f.signed = bySignatures
		if w := f.ask(http.MethodGet, "team/app/manifests/v1"); w.Code != http.StatusForbidden || len(f.questions) != 1 || string(f.questions[0].Manifest) != text {
			t.Errorf("%s: %d, questions %+v", text, w.Code, f.questions)
		}
	}
}

// TestAnIndexOfThousandsIsRefused: which of them led to an image would be forgotten, and with it the policy of the index.
func TestAnIndexOfThousandsIsRefused(t *testing.T) {
	t.Parallel()
	var digests []string
	for n := range 1100 {
		digests = append(digests, fmt.Sprintf("sha256:%064d", n))
	}
	mirror := newStore()
	mirror.addIndex("m/app", "v1", digests...)
	mirror.addIndex("m/app", "v2", digests[:900]...)
	f := newFixture(t, network{"a.io": mirror, "quay.io": newStore()}, signedTable())
	var codes []int
	for _, tag := range []string{"v1", "v2"} {
		f.login(t, "")
		codes = append(codes, f.ask(http.MethodGet, "team/app/manifests/"+tag).Code)
	}
	if diff := cmp.Diff([]int{502, 200}, codes); diff != "" {
		t.Error(diff)
	}
}

// TestAnImageIsJudgedByTheNamesThatLedToIt: two tags lead to one image, and only one of them is signed. While both are pulled, the gateway does not know
// which pull asks; a pull that was refused counts no more.
func TestAnImageIsJudgedByTheNamesThatLedToIt(t *testing.T) {
	t.Parallel()
	i := newImage("a")
	mirror := newStore().addImage("m/app", i)
	index := mirror.addIndex("m/app", "good", i.digest())
	mirror.addIndex("m/app", "bad", i.digest())
	mirror.sign("m/app", i.digest(), "quay.io/team/app:good ClusterImagePolicy/team")
	f := newFixture(t, network{"a.io": mirror, "quay.io": newStore()}, signedTable())
	f.signed = bySignatures
	ask := func(want int, method, reference string) {
		t.Helper()
		f.login(t, "") // containerd has another login for what it fetches
		if w := f.ask(method, "team/app/manifests/"+reference); w.Code != want {
			t.Errorf("%s %s: %d, want %d: %s", method, reference, w.Code, want, w.Body)
		}
	}
	ask(200, http.MethodHead, "good")
	ask(200, http.MethodGet, index)
	ask(200, http.MethodGet, i.digest())
	ask(200, http.MethodHead, "bad")
	ask(200, http.MethodGet, index)
	ask(403, http.MethodGet, i.digest())
	ask(200, http.MethodGet, i.digest()) // by the pull of the good one
	ask(403, http.MethodHead, i.digest())
	f.now = f.now.Add(time.Hour)
	ask(403, http.MethodGet, i.digest())
	ask(200, http.MethodHead, "good")
	ask(200, http.MethodGet, index)
	ask(200, http.MethodGet, i.digest())
}

// TestTheNamesOfADigestAreBounded.
func TestTheNamesOfADigestAreBounded(t *testing.T) {
	t.Parallel()
	mirror := newStore()
	var codes []int
	f := newFixture(t, network{"a.io": mirror, "quay.io": newStore()}, signedTable())
	for n := range 66 {
		tag := fmt.Sprintf("v%d", n)
		mirror.addIndex("m/app", tag, newImage("a").digest())
		codes = append(codes, f.ask(http.MethodHead, "team/app/manifests/"+tag).Code)
	}
	if codes[63] != 200 || codes[64] != 502 || codes[65] != 502 {
		t.Errorf("%v", codes)
	}
}

// TestWithoutAProgramNoPolicyIsSatisfied, as on a node whose payload is older.
func TestWithoutAProgramNoPolicyIsSatisfied(t *testing.T) {
	t.Parallel()
	i := newImage("a")
	n := network{"a.io": newStore().addImage("m/app", i), "quay.io": newStore()}
	f := &fixture{Handler: gateway.New(gateway.Options{
		Address: "127.0.0.1:9999", Now: time.Now, Log: slog.New(slog.DiscardHandler), Random: func([]byte) {},
		Client: &registry.Client{Verified: n, Insecure: n, Now: time.Now},
	})}
	f.SetTable(signedTable())
	f.login(t, "")
	if w := f.ask(http.MethodGet, "team/app/manifests/"+i.digest()); w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "there is no program to verify its signatures") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
