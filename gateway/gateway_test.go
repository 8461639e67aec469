package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/gateway/places"
)

func TestPlacesAreAskedInTheirOrder(t *testing.T) {
	t.Parallel()
	i := newImage("a")
	for name, c := range map[string]struct {
		first, second, source *store
		blocked               bool
		// code is of a GET by digest, from the registry that answers, "" for none.
		code int
		from string
	}{
		"the first has it":                   {newStore().addImage("m/app", i), newStore().addImage("app", i), newStore().addImage("team/app", i), false, 200, "a.io"},
		"the first lacks it":                 {newStore(), newStore().addImage("app", i), newStore().addImage("team/app", i), false, 200, "b.io"},
		"the first refuses":                  {&store{status: 403, cut: -1, content: newStore().addImage("m/app", i).content}, newStore().addImage("app", i), newStore(), false, 200, "b.io"},
		"the first is busy":                  {&store{status: 429, cut: -1, content: newStore().addImage("m/app", i).content}, newStore().addImage("app", i), newStore(), false, 200, "b.io"},
		"no mirror has it":                   {newStore(), newStore(), newStore().addImage("team/app", i), false, 200, "quay.io"},
		"the source must not be asked":       {newStore(), newStore(), newStore().addImage("team/app", i), true, 403, ""},
		"all lack it":                        {newStore(), newStore(), newStore(), false, 404, ""},
		"one of them failed":                 {newStore(), &store{status: 500, cut: -1, content: newStore().addImage("app", i).content}, newStore(), false, 502, ""},
		"the first has another digest of it": {&store{cut: -1, content: map[string][]byte{"/v2/m/app/manifests/" + i.digest(): []byte("{}")}}, newStore().addImage("app", i), newStore(), false, 200, "b.io"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := network{"a.io": c.first, "b.io": c.second, "quay.io": c.source}
			f := newFixture(t, n, mirrored(c.blocked, []string{"a.io/m", "b.io"}, nil))
			w := f.ask(http.MethodGet, "team/app/manifests/"+i.digest())
			if c.blocked {
				c.code = 502 // the mirrors lack it, and one place may not be asked
			}
			if w.Code != c.code || c.code == 200 && !bytes.Equal(w.Body.Bytes(), i.manifest) {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if c.blocked && (len(c.source.asked) > 0 || !strings.Contains(w.Body.String(), "ImageDigestMirrorSet/team")) {
				t.Errorf("the source was asked %v; %s", c.source.asked, w.Body)
			}
			if c.from != "" && !strings.Contains(f.log.String(), "from="+c.from+"/") {
				t.Errorf("from another place than %s:\n%s", c.from, &f.log)
			}
		})
	}
}

func TestWhatIsNotAskedForIsRefused(t *testing.T) {
	t.Parallel()
	i := newImage("a")
	source := newStore().addImage("team/app", i)
	f := newFixture(t, network{"quay.io": source}, mirrored(false, nil, nil))
	d := i.digest()
	for request, want := range map[string]int{
		"GET /v2/team/app/manifests/" + d + "?ns=quay.io":  200,
		"HEAD /v2/team/app/manifests/" + d + "?ns=quay.io": 200,
		"GET /v2/": 200,
		"PUT /v2/team/app/manifests/" + d + "?ns=quay.io":               405,
		"GET /v2/team/app/manifests/" + d:                               404,
		"GET /v2/team/app/manifests/" + d + "?ns=other.io":              403,
		"GET /v2/team/app/manifests/" + d + "?ns=quay.io&ns=x.io":       404,
		"GET /v2/team/app/manifests/" + d + "?ns=quay.io%2Fevil":        404,
		"GET /v2/team/app/manifests/" + d + "?ns=user@quay.io":          404,
		"GET /v2/team/../other/manifests/" + d + "?ns=quay.io":          404,
		"GET /v2/team%2fapp/manifests/" + d + "?ns=quay.io":             404,
		"GET /v2/team//app/manifests/" + d + "?ns=quay.io":              404,
		"GET /v2/team/App/manifests/" + d + "?ns=quay.io":               404,
		"GET /v2/team/app/manifests/..?ns=quay.io":                      404,
		"GET /v2/team/app/tags/list?ns=quay.io":                         404,
		"GET /v2/team/app/blobs/latest?ns=quay.io":                      404,
		"GET /v2/team/app/blobs/" + d[:len(d)-1] + "?ns=quay.io":        404,
		"GET /v2/_catalog?ns=quay.io":                                   404,
		"GET /v2/team/app/manifests/" + strings.ToUpper(d) + "?ns=quay": 404,
	} {
		method, target, _ := strings.Cut(request, " ")
		r := httptest.NewRequest(method, "https://127.0.0.1:9999"+target, nil)
		r.Header.Set("Authorization", "Bearer "+f.token)
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", request, w.Code, want)
		}
	}
	for _, a := range source.asked {
		if !strings.HasSuffix(a, "/v2/team/app/manifests/"+d) {
			t.Errorf("the source was asked %s", a)
		}
	}
}

func TestATokenIsDemanded(t *testing.T) {
	t.Parallel()
	i := newImage("a")
	f := newFixture(t, network{"quay.io": newStore().addImage("team/app", i)}, mirrored(false, nil, nil))
	path := "team/app/manifests/" + i.digest()
	f.now = f.now.Add(time.Hour)
	w := f.ask(http.MethodGet, path)
	if got, want := w.Header().Get("WWW-Authenticate"), `Bearer realm="https://127.0.0.1:9999/token",service="127.0.0.1:9999",error="invalid_token"`; w.Code != 401 || got != want {
		t.Errorf("%d %s", w.Code, got)
	}
	f.token = ""
	if w := f.ask(http.MethodGet, path); w.Code != 401 {
		t.Errorf("an empty token: %d", w.Code)
	}
	f.login(t, "")
	if w := f.ask(http.MethodGet, path); w.Code != 200 {
		t.Errorf("a new token: %d", w.Code)
	}
}

// TestEachPlaceGetsItsOwnCredentials shows that those of the image go to its source alone, and those of mirrors to these.
func TestEachPlaceGetsItsOwnCredentials(t *testing.T) {
	t.Parallel()
	i := newImage("a")
	basic, token, source := newStore(), newStore(), newStore().addImage("team/app", i)
	basic.user, token.user, source.user = "a", "b", "kubelet"
	token.realm, source.realm = "https://tokens.io/token", "https://quay.io/token"
	tokens, open, greedy := newStore(), newStore(), newStore()
	greedy.user = "kubelet" // it asks for what it has no entry of
	table := mirrored(false, []string{"a.io/m", "b.io/deep/x", "open.io", "greedy.io"}, nil)
	table.Credentials = []places.Credential{{Key: "a.io", Auth: auth("a")}, {Key: "b.io", Auth: auth("wrong")}, {Key: "b.io/deep", Auth: auth("b")}, {Key: "quay.io", Auth: auth("mirror")}}
	n := network{"a.io": basic, "b.io": token, "quay.io": source, "tokens.io": tokens, "open.io": open, "greedy.io": greedy}
	f := newFixture(t, n, table)
	f.login(t, "kubelet")
	for range 2 {
		if w := f.ask(http.MethodGet, "team/app/manifests/"+i.digest()); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	got := map[string][]string{}
	for host, s := range n {
		got[host] = slices.Compact(s.given)
	}
	want := map[string][]string{
		"a.io": {"Basic " + auth("a").Reveal()}, "tokens.io": {"Basic " + auth("b").Reveal()}, "b.io": {"Bearer for-b"}, "open.io": nil, "greedy.io": nil,
		"quay.io": {"Basic " + auth("kubelet").Reveal(), "Bearer for-kubelet"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(f.log.String(), "secret-of") || strings.Contains(f.log.String(), "Basic") {
		t.Errorf("the log has credentials:\n%s", &f.log)
	}
}

// TestNoLoginUsesTheCredentialsOfAnother is of a private image that one Pod has an imagePullSecret for: a tag that it resolved opens nothing to others, at
// a mirror in the same registry either.
func TestNoLoginUsesTheCredentialsOfAnother(t *testing.T) {
	t.Parallel()
	i := newImage("a")
	source := newStore().addImage("team/app", i).addImage("copies/app", i, "v1")
	source.user = "owner"
	f := newFixture(t, network{"quay.io": source}, mirrored(false, nil, []string{"quay.io/copies"}))
	f.login(t, "owner")
	if w := f.ask(http.MethodGet, "team/app/manifests/v1"); w.Code != 200 {
		t.Fatal(w.Code)
	}
	for _, user := range []string{"", "stranger"} {
		f.login(t, user)
		for _, path := range []string{"manifests/v1", "manifests/" + i.digest(), "blobs/" + i.layerDigest()} {
			if w := f.ask(http.MethodGet, "team/app/"+path); w.Code == 200 {
				t.Errorf("%q got %s", user, path)
			}
		}
	}
}

// TestATagLeadsToItsDigests shows that what belongs to a tag is pulled from where the tag was, and that other digests are not asked for there.
func TestATagLeadsToItsDigests(t *testing.T) {
	t.Parallel()
	i, other := newImage("a"), newImage("b")
	tags, source := newStore().addImage("tags/app", i, "v1").addImage("tags/app", other, "v2"), newStore()
	f := newFixture(t, network{"t.io": tags, "quay.io": source}, mirrored(true, nil, []string{"t.io/tags"}))
	if w := f.ask(http.MethodHead, "team/app/manifests/v1"); w.Code != 200 || w.Header().Get("Docker-Content-Digest") != i.digest() {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	for _, path := range []string{"manifests/" + i.digest(), "blobs/" + i.layerDigest()} {
		if w := f.ask(http.MethodGet, "team/app/"+path); w.Code != 200 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	before := len(tags.asked)
	for _, path := range []string{"app/manifests/" + other.digest(), "app/blobs/" + other.layerDigest(), "else/blobs/" + i.layerDigest()} {
		if w := f.ask(http.MethodGet, "team/"+path); w.Code != 403 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	f.SetTable(mirrored(true, nil, nil))
	if w := f.ask(http.MethodGet, "team/app/manifests/"+i.digest()); w.Code != 403 {
		t.Errorf("after the mirror was removed: %d", w.Code)
	}
	if len(tags.asked) != before || len(source.asked) > 0 {
		t.Errorf("asked for digests: %v, %v", tags.asked[before:], source.asked)
	}
}

// TestALayerIsContinuedElsewhere cuts a layer at many positions, at one or at both mirrors.
func TestALayerIsContinuedElsewhere(t *testing.T) {
	t.Parallel()
	i := newImage("layer")
	for cut := 1; cut < len(i.layer); cut += 4 << 10 {
		for _, both := range []bool{false, true} {
			first, second := newStore().addImage("app", i), newStore().addImage("app", i)
			first.cut = cut
			if both {
				second.cut = cut + 1000
			}
			f := newFixture(t, network{"a.io": first, "b.io": second, "quay.io": newStore()}, mirrored(true, []string{"a.io", "b.io"}, nil))
			w := f.ask(http.MethodGet, "team/app/blobs/"+i.layerDigest())
			if w.Code != 200 || !bytes.Equal(w.Body.Bytes(), i.layer) {
				t.Fatalf("cut at %d: %d, %d of %d bytes", cut, w.Code, w.Body.Len(), len(i.layer))
			}
		}
	}
}

func TestAPartOfALayer(t *testing.T) {
	t.Parallel()
	i := newImage("layer")
	first, second := newStore().addImage("app", i), newStore().addImage("app", i)
	first.cut = 100
	f := newFixture(t, network{"a.io": first, "b.io": second}, mirrored(true, []string{"a.io", "b.io"}, nil))
	w := f.ask(http.MethodGet, "team/app/blobs/"+i.layerDigest(), "Range", "bytes=1000-")
	want := fmt.Sprintf("bytes 1000-%d/%d", len(i.layer)-1, len(i.layer))
	if w.Code != 206 || w.Header().Get("Content-Range") != want || !bytes.Equal(w.Body.Bytes(), i.layer[1000:]) {
		t.Errorf("%d %v, %d bytes", w.Code, w.Header(), w.Body.Len())
	}
}

// TestALyingMirror shows that a layer with one wrong byte never arrives whole, and that its mirror is asked last from then on.
func TestALyingMirror(t *testing.T) {
	t.Parallel()
	i := newImage("layer")
	liar, honest := newStore().addImage("app", i), newStore().addImage("app", i)
	wrong := bytes.Clone(i.layer)
	wrong[3000] ^= 1
	liar.add("app/blobs/"+i.layerDigest(), wrong)
	f := newFixture(t, network{"a.io": liar, "b.io": honest}, mirrored(true, []string{"a.io", "b.io"}, nil))
	path := "team/app/blobs/" + i.layerDigest()
	if w := f.ask(http.MethodGet, path); w.Code != -1 || w.Body.Len() >= len(i.layer) {
		t.Errorf("%d, %d of %d bytes", w.Code, w.Body.Len(), len(i.layer))
	}
	if w := f.ask(http.MethodGet, path); w.Code != 200 || !bytes.Equal(w.Body.Bytes(), i.layer) {
		t.Errorf("the next time: %d", w.Code)
	}
	f.now = f.now.Add(5 * time.Minute)
	before := len(liar.asked)
	if f.ask(http.MethodGet, path); len(liar.asked) == before {
		t.Error("after five minutes it is not asked first")
	}
}

func TestAPlaceThatFailsIsAskedLast(t *testing.T) {
	t.Parallel()
	i := newImage("a")
	bad, good := newStore(), newStore().addImage("app", i)
	bad.status = 503
	f := newFixture(t, network{"a.io": bad, "b.io": good}, mirrored(true, []string{"a.io", "b.io"}, nil))
	for range 10 {
		if w := f.ask(http.MethodGet, "team/app/manifests/"+i.digest()); w.Code != 200 {
			t.Fatal(w.Code)
		}
	}
	if len(bad.asked) != 3 {
		t.Errorf("it was asked %d times", len(bad.asked))
	}
}

// TestAStallingMirror is in virtual time: after a minute without a byte the next place goes on.
func TestAStallingMirror(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newImage("layer")
		first, second := newStore().addImage("app", i), newStore().addImage("app", i)
		first.cut, first.stalls = 5000, true
		f := newFixture(t, network{"a.io": first, "b.io": second}, mirrored(true, []string{"a.io", "b.io"}, nil))
		begun := time.Now()
		w := f.ask(http.MethodGet, "team/app/blobs/"+i.layerDigest())
		if w.Code != 200 || !bytes.Equal(w.Body.Bytes(), i.layer) || time.Since(begun) != time.Minute {
			t.Errorf("%d, %d bytes after %s", w.Code, w.Body.Len(), time.Since(begun))
		}
	})
}

func TestRedirectsAreFollowedInside(t *testing.T) {
	t.Parallel()
	i := newImage("a")
	for to, want := range map[string]int{"https://store.io": 200, "http://store.io": 502, "https://quay.io:444": 200} {
		source, elsewhere := newStore().addImage("team/app", i), newStore().addImage("team/app", i)
		source.user, source.redirect, elsewhere.plain = "kubelet", to, true
		host := strings.SplitN(to, "://", 2)[1]
		f := newFixture(t, network{"quay.io": source, host: elsewhere}, mirrored(false, nil, nil))
		f.login(t, "kubelet")
		w := f.ask(http.MethodGet, "team/app/manifests/"+i.digest())
		if w.Code != want || w.Header().Get("Location") != "" || len(elsewhere.given) > 0 {
			t.Errorf("%s: %d %v; it was given %v", to, w.Code, w.Header(), elsewhere.given)
		}
	}
}

// TestTheReasonIsInTheStatusLine is by a connection: a recorder has no reason phrase.
func TestTheReasonIsInTheStatusLine(t *testing.T) {
	t.Parallel()
	f := newFixture(t, network{"a.io": {status: 500, cut: -1}}, mirrored(true, []string{"a.io/\nx"}, nil))
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, server.URL+"/v2/team/app/manifests/"+newImage("a").digest()+"?ns=quay.io", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+f.token)
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if want := "502 quay.io/team/app@" + newImage("a").digest() + " is at no place: a.io/ x/app: "; !strings.HasPrefix(response.Status, want) {
		t.Errorf("%q", response.Status)
	}
}

func TestALargeManifest(t *testing.T) {
	t.Parallel()
	i := newImage("a")
	first := newStore()
	first.add("app/manifests/v1", make([]byte, 4<<20+1))
	f := newFixture(t, network{"a.io": first, "b.io": newStore().addImage("app", i, "v1")}, mirrored(true, nil, []string{"a.io", "b.io"}))
	if w := f.ask(http.MethodGet, "team/app/manifests/v1"); w.Code != 200 || !bytes.Equal(w.Body.Bytes(), i.manifest) {
		t.Errorf("%d, %d bytes", w.Code, w.Body.Len())
	}
}

// TestRegistriesWithoutAPlaceAreListed after ten minutes without an answer, until there is one. Images that are nowhere, or forbidden, are no trouble.
func TestRegistriesWithoutAPlaceAreListed(t *testing.T) {
	t.Parallel()
	i := newImage("a")
	mirror := newStore().addImage("app", i)
	f := newFixture(t, network{"a.io": mirror, "quay.io": newStore()}, mirrored(true, []string{"a.io"}, nil))
	ask := func(status int, after time.Duration) {
		t.Helper()
		mirror.status, f.now = status, f.now.Add(after)
		f.ask(http.MethodGet, "team/app/manifests/"+i.digest())
	}
	ask(503, 0)
	ask(503, 9*time.Minute)
	f.ask(http.MethodGet, "team/app/manifests/v1") // there is no mirror for tags
	if len(f.troubles) != 0 {
		t.Fatalf("too early: %v", f.troubles)
	}
	ask(503, time.Minute)
	ask(503, time.Minute)
	if len(f.troubles) != 1 || len(f.troubles[0]) != 1 || f.troubles[0][0].Registry != "quay.io" || !strings.Contains(f.troubles[0][0].Reason, "a.io/app: 503") {
		t.Fatalf("%+v", f.troubles)
	}
	ask(503, 10*time.Minute)
	ask(0, time.Minute)
	if len(f.troubles) != 3 || len(f.troubles[2]) != 0 {
		t.Errorf("after an answer: %+v", f.troubles)
	}
	ask(503, time.Minute)
	ask(404, 20*time.Minute)
	if len(f.troubles) != 3 {
		t.Errorf("an image that is nowhere: %+v", f.troubles)
	}
	f.login(t, "")
	ask(503, time.Minute)
	f.failing = errors.New("the file is open elsewhere")
	ask(503, 20*time.Minute)
	f.failing = nil
	ask(503, time.Minute)
	ask(503, time.Minute)
	if len(f.troubles) != 5 || len(f.troubles[4]) != 1 {
		t.Errorf("a list that could not be written: %+v", f.troubles)
	}
	mirror.fails = errors.New("malformed answer \x1b[31m\u202e" + strings.Repeat("x", 1<<16))
	ask(0, 20*time.Minute)
	last := f.troubles[len(f.troubles)-1][0].Reason
	if !strings.Contains(last, "a.io/app: malformed answer  [31m xxx") || len(last) > 1<<10 {
		t.Errorf("what a registry sent is listed as it came: %d bytes, %.200q", len(last), last)
	}
}
