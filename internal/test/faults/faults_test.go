package faults

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// answer is what has arrived of one.
type answer struct {
	code int
	text string
}

// through returns the answers to requests through a network with a fault, and how many of them were sent on.
func through(t *testing.T, f Fault, method, path string, requests int) (answers []answer, failed []error, served int) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served++
		_, _ = io.WriteString(w, "0123456789")
		if r.URL.Query().Get("watch") != "" {
			w.(http.Flusher).Flush() //nolint:forcetypeassert // the test ends without
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	n := New(1)
	n.Set(f)
	c := http.Client{Transport: n.Wrap(http.DefaultTransport)}
	for range requests {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Do(req)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		text, err := io.ReadAll(got.Body)
		if err != nil {
			failed = append(failed, err)
		}
		_ = got.Body.Close() // read to its end
		answers = append(answers, answer{got.StatusCode, string(text)})
	}
	return answers, failed, served
}

func codes(list []answer) []int {
	var all []int
	for _, a := range list {
		if !slices.Contains(all, a.code) {
			all = append(all, a.code)
		}
	}
	slices.Sort(all)
	return all
}

func TestFaults(t *testing.T) {
	const many = 60
	for _, c := range []struct {
		fault        Fault
		method, path string
		codes        []int
		failed       bool
		servesAll    bool
	}{
		{None, http.MethodPatch, "/api/v1/nodes/a", []int{200}, false, true},
		{TooManyRequests, http.MethodPatch, "/api/v1/nodes/a", []int{200, 429}, false, false},
		{TooManyRequests, http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/x/leases/a", []int{200}, false, true},
		{ServerErrors, http.MethodGet, "/api/v1/nodes", []int{200, 500, 503, 504}, false, false},
		{Denied, http.MethodPatch, "/api/v1/nodes/a", []int{200, 400, 403}, false, false},
		{Denied, http.MethodGet, "/api/v1/nodes/a", []int{200}, false, true},
		{CutBodies, http.MethodGet, "/api/v1/nodes", []int{200}, true, true},
		{LostAnswers, http.MethodPatch, "/api/v1/nodes/a", []int{200}, true, true},
		{LostAnswers, http.MethodGet, "/api/v1/nodes/a", []int{200}, false, true},
		{Gone, http.MethodGet, "/api/v1/nodes", []int{200}, false, true},
	} {
		t.Run(string(c.fault)+" "+c.method+c.path, func(t *testing.T) {
			answers, failed, served := through(t, c.fault, c.method, c.path, many)
			if got := codes(answers); !slices.Equal(got, c.codes) {
				t.Errorf("answers %v, want %v", got, c.codes)
			}
			if (len(failed) > 0) != c.failed {
				t.Errorf("%d requests failed, the first with %v", len(failed), errors.Join(failed...))
			}
			if (served == many) != c.servesAll {
				t.Errorf("%d of %d requests were served", served, many)
			}
		})
	}
}

// TestWatchesEnd: with CutWatches a watch ends without an error of its own, with GarbledWatches after garbage, and with Gone it is refused where it goes on.
func TestWatchesEnd(t *testing.T) {
	begun := time.Now()
	answers, failed, _ := through(t, CutWatches, http.MethodGet, "/api/v1/nodes?watch=true", 1)
	if took := time.Since(begun); took > 3*watchLife || len(answers) != 1 || len(failed) != 1 || answers[0].text != "0123456789" {
		t.Errorf("a watch ended after %s with %q and %v", took, answers[0].text, failed)
	}
	answers, _, _ = through(t, GarbledWatches, http.MethodGet, "/api/v1/nodes?watch=true", 1)
	if len(answers) != 1 || answers[0].text != "0123456789"+garbage {
		t.Errorf("a watch has brought %+v", answers)
	}
	answers, _, _ = through(t, Gone, http.MethodGet, "/api/v1/nodes?watch=true&resourceVersion=7", 6)
	if got := codes(answers); !slices.Equal(got, []int{200, 410}) {
		t.Errorf("watches are answered with %v", got)
	}
}

// TestClientsUnderstandTheAnswers: client-go takes the answers for those of an API server.
func TestClientsUnderstandTheAnswers(t *testing.T) {
	for code, is := range map[int]func(error) bool{
		http.StatusTooManyRequests: apierrors.IsTooManyRequests, http.StatusGone: apierrors.IsResourceExpired, http.StatusForbidden: apierrors.IsForbidden, http.StatusServiceUnavailable: apierrors.IsServiceUnavailable,
		http.StatusGatewayTimeout: apierrors.IsTimeout, http.StatusInternalServerError: apierrors.IsInternalError,
	} {
		n := New(1)
		config := &rest.Config{Host: "http://127.0.0.1:1"}
		config.Wrap(func(http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) { return transport{Network: n}.answerFault(r, code), nil })
		})
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // client-go asks again after Retry-After
		_, err = c.CoreV1().Nodes().Create(ctx, &corev1.Node{}, metav1.CreateOptions{})
		cancel()
		if !is(err) && code != http.StatusTooManyRequests || err == nil {
			t.Errorf("%d is taken for %v", code, err)
		}
		if seconds, ok := apierrors.SuggestsClientDelay(err); code == http.StatusTooManyRequests && apierrors.IsTooManyRequests(err) && (!ok || seconds != retryAfter) {
			t.Errorf("the client waits %d s", seconds)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
