package registry

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/gateway/places"
)

// TestNoLinkLocalAddress: a registry at such an address is not asked, by its number or where it leads to.
func TestNoLinkLocalAddress(t *testing.T) {
	t.Parallel()
	for address, refused := range map[string]bool{
		"169.254.169.254:80": true, "[fe80::1]:443": true, "[::ffff:169.254.169.254]:80": true, "10.0.0.1:443": false, "127.0.0.1:5000": false,
	} {
		if err := refuseLinkLocal(context.Background(), "tcp", address, nil); (err != nil) != refused {
			t.Errorf("%s: %v", address, err)
		}
	}
	verified, insecure := Options{}.Transports()
	c := &Client{Verified: verified, Insecure: insecure, Now: time.Now}
	response, err := c.Do(t.Context(), Request{Method: http.MethodGet, Place: places.Place{Registry: "169.254.169.254", Repository: "latest", Insecure: true}, Path: "manifests/v1"})
	if err == nil {
		_ = response.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "link-local") {
		t.Errorf("asked: %v", err)
	}
}

func TestChallenges(t *testing.T) {
	t.Parallel()
	bearer := func(p map[string]string) challenge { return challenge{"bearer", p} }
	for text, want := range map[string]challenge{
		`Bearer realm="https://a/token",service="a",scope="repository:x:pull,push"`: bearer(map[string]string{"realm": "https://a/token", "service": "a", "scope": "repository:x:pull,push"}),
		`bearer REALM=https://a/token , service = "a \"b\""`:                        bearer(map[string]string{"realm": "https://a/token", "service": `a "b"`}),
		`Basic realm="x"`: {"basic", map[string]string{"realm": "x"}},
		`Basic realm="x", Bearer realm="https://a/token"`: bearer(map[string]string{"realm": "https://a/token"}),
		`Negotiate`:                        {},
		``:                                 {},
		`Bearer realm="open`:               bearer(map[string]string{}),
		strings.Repeat(`Digest a="b",`, 9): {},
	} {
		if diff := cmp.Diff(want, chooseChallenge([]string{text}), cmp.AllowUnexported(challenge{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	if got := chooseChallenge([]string{`Basic realm="x"`, `Bearer realm="https://a/token"`}); got.scheme != "bearer" {
		t.Errorf("of two headers: %+v", got)
	}
}

func FuzzChallenges(f *testing.F) {
	f.Add(`Bearer realm="https://a/token",service="a"`)
	f.Add(`Basic realm="x", Bearer realm=y`)
	f.Fuzz(func(_ *testing.T, text string) { chooseChallenge([]string{text}) })
}
