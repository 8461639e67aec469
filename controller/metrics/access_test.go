package metrics

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
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
