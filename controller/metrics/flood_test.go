package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// judge is an API server in memory, which knows the tokens that begin with "token-of-" until they are revoked.
type judge struct {
	asked   atomic.Int64
	revoked atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (j *judge) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var answer any
	if strings.HasSuffix(r.URL.Path, "tokenreviews") {
		var review authenticationv1.TokenReview
		if err := json.Unmarshal(text, &review); err != nil {
			return nil, err
		}
		name, known := strings.CutPrefix(review.Spec.Token, "token-of-")
		if !known {
			j.asked.Add(1)
		}
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: known && !j.revoked.Load(), User: authenticationv1.UserInfo{Username: name}}
		answer = review
	} else {
		var review authorizationv1.SubjectAccessReview
		if err := json.Unmarshal(text, &review); err != nil {
			return nil, err
		}
		review.Status.Allowed = true
		answer = review
	}
	text, err = json.Marshal(answer)
	return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, err
}

// TestAllowedClientsGetInDuringAFloodOfTokens: who was let in before is let in while others send tokens that are made up, and the API server is asked about few of them.
func TestAllowedClientsGetInDuringAFloodOfTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &judge{}
		filter, err := NewAccessFilter(&rest.Config{Host: "http://api.example.com", ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, &http.Client{Transport: api})
		if err != nil {
			t.Fatal(err)
		}
		handler, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
		if err != nil {
			t.Fatal(err)
		}
		address := func(token string) string {
			if strings.HasPrefix(token, "token-of-prometheus") {
				return "10.128.0.7:50000"
			}
			return "10.128.0.66:50000"
		}
		scrape := func(token string) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
			r.RemoteAddr = address(token)
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return w.Code
		}
		if got := scrape("token-of-prometheus"); got != http.StatusOK {
			t.Fatalf("before the flood: status %d", got)
		}
		const seconds, each = 300, 100
		turnedAway := atomic.Int64{}
		for second := range seconds {
			for i := range each {
				go func() {
					if scrape(fmt.Sprintf("made-up-%d-%d", second, i)) == http.StatusTooManyRequests {
						turnedAway.Add(1)
					}
				}()
			}
			synctest.Wait() // until each has its answer, or waits for its turn
			if second%30 == 29 {
				// The kubelet exchanges the token in the middle.
				token := "token-of-prometheus" + strings.Repeat("-exchanged", second/150)
				if got := scrape(token); got != http.StatusOK {
					t.Errorf("after %d seconds of the flood: status %d", second+1, got)
				}
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if most := int64(burst + rate*seconds); api.asked.Load() > most || turnedAway.Load() < seconds*each-most {
			t.Errorf("of %d tokens, %d were asked about and %d turned away; at most %d should be asked about", seconds*each, api.asked.Load(), turnedAway.Load(), most)
		}
		time.Sleep(time.Minute)
		if got := scrape("another"); got != http.StatusUnauthorized {
			t.Errorf("a token after the flood: status %d", got)
		}
		// A token that is revoked is let in for as long as a verdict is valid.
		api.revoked.Store(true)
		time.Sleep(allowedFor)
		for range 2 {
			if got := scrape("token-of-prometheus"); got != http.StatusUnauthorized {
				t.Errorf("a token that was revoked: status %d", got)
			}
		}
	})
}
