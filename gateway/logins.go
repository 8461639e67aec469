package gateway

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"k8s.io/utils/lru"

	"wmco/bundle"
)

// tokenPath is where containerd exchanges the kubelet's credentials for a token, with POST, or gets one without credentials, with GET
// (distribution.github.io/distribution/spec/auth).
const tokenPath = "/token"

// A login lasts as long as a large pull; after it containerd asks for another token and goes on.
const (
	loginLife = time.Hour
	maxLogins = 1024
	// maxForm is the size of the largest request for a token, in bytes. The tokens of clouds have some kilobytes.
	maxForm = 64 << 10
)

// logins are the credentials that containerd gave, by token: containerd gives them once for an image.
type logins struct {
	random func([]byte)
	list   *lru.Cache
}

type login struct {
	auth bundle.Secret
	end  time.Time
}

func newLogins(random func([]byte)) *logins { return &logins{random, lru.New(maxLogins)} }

func (l *logins) addLogin(auth bundle.Secret, now time.Time) string {
	data := make([]byte, 32)
	l.random(data)
	text := base64.RawURLEncoding.EncodeToString(data)
	l.list.Add(text, login{auth, now.Add(loginLife)})
	return text
}

// findLogin returns the credentials of an Authorization header; false if its token is unknown or has expired.
func (l *logins) findLogin(header string, now time.Time) (bundle.Secret, bool) {
	v, ok := l.list.Get(bearerToken(header))
	if !ok || !now.Before(v.(login).end) {
		return bundle.Secret{}, false
	}
	return v.(login).auth, true
}

// challenge demands a token. The error invalid_token makes containerd request a new one if its token has expired.
func (h *Handler) challenge(w http.ResponseWriter, r *http.Request) {
	u := url.URL{Scheme: "https", Host: h.address, Path: tokenPath}
	text := `Bearer realm="` + u.String() + `",service="` + h.address + `"`
	if r.Header.Get("Authorization") != "" {
		text += `,error="invalid_token"`
	}
	w.Header().Set("WWW-Authenticate", text)
	w.WriteHeader(http.StatusUnauthorized)
}

func (h *Handler) serveToken(w http.ResponseWriter, r *http.Request) {
	var auth bundle.Secret
	switch r.Method {
	case http.MethodPost:
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			http.Error(w, "not a request for a token", http.StatusBadRequest)
			return
		}
		if user := r.PostForm.Get("username"); user != "" {
			auth = basicAuth(user, r.PostForm.Get("password"))
		}
	case http.MethodGet:
		if user, password, ok := r.BasicAuth(); ok {
			auth = basicAuth(user, password)
		}
	default:
		http.Error(w, "GET or POST", http.StatusMethodNotAllowed)
		return
	}
	text := h.logins.addLogin(auth, h.now())
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"token": text, "access_token": text, "expires_in": int(loginLife.Seconds())})
}

func basicAuth(user, password string) bundle.Secret {
	return bundle.NewSecret(base64.StdEncoding.EncodeToString([]byte(user + ":" + password)))
}
