package testenv

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/rest"
)

// answers are what an API server answers, one after the other: a status, or zero for a connection that is refused. The last one is repeated.
type answers struct {
	list  []int
	asked int
}

// RoundTrip implements http.RoundTripper.
func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	code := a.list[min(a.asked, len(a.list)-1)]
	a.asked++
	if code == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

func TestReadsAreRepeated(t *testing.T) {
	for _, tt := range []struct {
		name, method, url string
		answers           []int
		// want is the last status, zero for an error, and asked how many requests were made; zero is more than one.
		want, asked int
	}{
		{"an answer", http.MethodGet, "/api/v1/nodes", []int{200}, 200, 1},
		{"etcd times out", http.MethodGet, "/api/v1/nodes", []int{500, 504, 200}, 200, 3},
		{"an API server that restarts", http.MethodGet, "/api/v1/nodes", []int{0, 503, 200}, 200, 3},
		{"too many requests", http.MethodGet, "/api/v1/nodes", []int{429, 200}, 200, 2},
		{"what is not there", http.MethodGet, "/api/v1/nodes/a", []int{404, 200}, 404, 1},
		{"what is forbidden", http.MethodGet, "/api/v1/nodes", []int{403, 200}, 403, 1},
		{"a write", http.MethodPost, "/api/v1/nodes", []int{500, 200}, 500, 1},
		{"a watch", http.MethodGet, "/api/v1/nodes?watch=true", []int{500, 200}, 500, 1},
		{"an API server that does not come back", http.MethodGet, "/api/v1/nodes", []int{0}, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &answers{list: tt.answers}
				transport := RetryReads(&rest.Config{}).WrapTransport(server)
				request, err := http.NewRequestWithContext(t.Context(), tt.method, "https://api.example.com"+tt.url, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := transport.RoundTrip(request)
				got := 0
				if err == nil {
					got = answer.StatusCode
					_ = answer.Body.Close()
				}
				if got != tt.want || tt.asked > 0 && server.asked != tt.asked || server.asked == 0 || tt.asked == 0 && server.asked == 1 {
					t.Errorf("status %d after %d requests (%v), want %d after %d", got, server.asked, err, tt.want, tt.asked)
				}
			})
		})
	}
}
