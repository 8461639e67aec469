package metrics

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// A token that cannot be judged is refused, and is asked about again by the next request.
func TestAccessWithoutAPIServer(t *testing.T) {
	asked := 0
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		http.Error(w, "away", http.StatusInternalServerError)
	}))
	defer away.Close()
	filter, err := NewAccessFilter(&rest.Config{Host: away.URL}, away.Client())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request passes") }))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Authorization", "Bearer x")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("status %d", w.Code)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

// TestVerdictsAreAboutWhatWasAsked: a verdict about a path or a verb does not hold for another one, nor one about a token for another token.
func TestVerdictsAreAboutWhatWasAsked(t *testing.T) {
	asked := map[string]int{}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "tokenreviews") {
			var review authenticationv1.TokenReview
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
				t.Error(err)
			}
			name, known := strings.CutPrefix(review.Spec.Token, "token-of-")
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: known, User: authenticationv1.UserInfo{Username: name, Groups: []string{"g"}}}
			_ = json.NewEncoder(w).Encode(review)
			return
		}
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		a := review.Spec.NonResourceAttributes
		asked[review.Spec.User+" "+a.Verb+" "+a.Path]++
		review.Status.Allowed = review.Spec.User == "prometheus" && slices.Equal(review.Spec.Groups, []string{"g"}) && a.Verb == "get" && a.Path == "/metrics"
		_ = json.NewEncoder(w).Encode(review)
	}))
	defer api.Close()
	filter, err := NewAccessFilter(&rest.Config{Host: api.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, api.Client())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	if err != nil {
		t.Fatal(err)
	}
	const prometheus = "Bearer token-of-prometheus"
	for range 2 { // the second answers are those that are remembered
		for _, tt := range []struct {
			name, method, path, authorization string
			want                              int
		}{
			{"what it may read", http.MethodGet, "/metrics", prometheus, http.StatusOK},
			{"the scheme in another case", http.MethodGet, "/metrics", "bearer  token-of-prometheus", http.StatusOK},
			{"another path", http.MethodGet, "/debug/pprof", prometheus, http.StatusForbidden},
			{"another verb", http.MethodPost, "/metrics", prometheus, http.StatusForbidden},
			{"another user", http.MethodGet, "/metrics", "Bearer token-of-other", http.StatusForbidden},
			{"an unknown token", http.MethodGet, "/metrics", "Bearer made-up", http.StatusUnauthorized},
			{"another scheme", http.MethodGet, "/metrics", "Basic token-of-prometheus", http.StatusUnauthorized},
			{"no token", http.MethodGet, "/metrics", "Bearer ", http.StatusUnauthorized},
			{"nothing", http.MethodGet, "/metrics", "", http.StatusUnauthorized},
		} {
			r := httptest.NewRequest(tt.method, tt.path, nil)
			r.Header.Set("Authorization", tt.authorization)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != tt.want || (w.Header().Get("WWW-Authenticate") != "") != (tt.want == http.StatusUnauthorized) || (w.Header().Get("Connection") == "close") != (tt.want != http.StatusOK) {
				t.Errorf("%s: status %d, want %d; headers %v", tt.name, w.Code, tt.want, w.Header())
			}
		}
	}
	for _, question := range []string{"prometheus get /metrics", "prometheus get /debug/pprof", "prometheus post /metrics", "other get /metrics"} {
		if asked[question] == 0 {
			t.Errorf("%s: was not asked", question)
		}
	}
}
