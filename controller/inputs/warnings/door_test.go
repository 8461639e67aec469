package warnings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"wmco/controller/gather"
	"wmco/controller/inputs/desired"
	policies "wmco/deploy/admission"
	"wmco/render"
)

// post is a request as an API server sends it.
func post(t testing.TB, body io.Reader) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, policies.WarningsPath, body)
	r.Header.Set("Content-Type", "application/json")
	return r
}

// reviewOf is the text of a request.
func reviewOf(t testing.TB, req admission.Request) []byte {
	t.Helper()
	req.UID = "some-uid"
	text, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &req.AdmissionRequest})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// ask returns the status and the answer; nil where it is none of an admission webhook.
func ask(t testing.TB, h http.Handler, r *http.Request) (int, *admissionv1.AdmissionResponse) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var answer admissionv1.AdmissionReview
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
	}
	return w.Code, answer.Response
}

func handler(t testing.TB, w *Warner) http.Handler {
	t.Helper()
	h, err := NewHandler(*w)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestNothingIsRefused, whatever goes wrong, and no answer takes longer than its limit.
func TestNothingIsRefused(t *testing.T) {
	c := cluster(t, 1)
	synctest.Test(t, func(t *testing.T) { checkNothingIsRefused(t, c) })
}

func checkNothingIsRefused(t *testing.T, c client.Client) {
	t.Helper()
	broken := warner(c)
	broken.Read = func(context.Context, client.Reader) (*desired.Hosts, error) { return nil, errors.New("secret text") }
	slow := warner(c)
	slow.Read = func(ctx context.Context, _ client.Reader) (*desired.Hosts, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	withCredentials := warner(c)
	withCredentials.Read = func(ctx context.Context, from client.Reader) (*desired.Hosts, error) {
		hosts, err := warner(c).Read(ctx, from)
		hosts.WithoutCredentials = false
		return hosts, err
	}
	malformed := mirror(t, "quay.io")
	malformed.Object.Raw = []byte(`"text"`)
	other := mirror(t, "quay.io")
	other.OldObject.Raw = request(t, metav1.GroupVersionKind{}, "", "", map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "new"}}).Object.Raw
	settings := func(namespace string) admission.Request {
		return request(t, metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, gather.OperatorNamespace, render.SettingsConfigMap, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": namespace, "name": render.SettingsConfigMap}, "data": map[string]any{render.SettingsKey: "unknown: 1"},
		})
	}
	elsewhere := settings(gather.OperatorNamespace)
	elsewhere.OldObject.Raw = settings("default").Object.Raw
	for name, x := range map[string]struct {
		w   *Warner
		req admission.Request
	}{
		"the inputs cannot be read":       {broken, mirror(t, "quay.io")},
		"they are not read in time":       {slow, mirror(t, "quay.io")},
		"they have credentials":           {withCredentials, mirror(t, "quay.io")},
		"an object that is no object":     {warner(c), malformed},
		"an object that was another kind": {warner(c), other},
		"one that was in another place":   {warner(c), elsewhere},
		"a kind that is not wanted":       {broken, request(t, metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, "a", "b", nil)},
		"a Secret that is not wanted":     {broken, request(t, metav1.GroupVersionKind{Version: "v1", Kind: "Secret"}, "openshift-config", "other", nil)},
		"a ConfigMap of another folder":   {broken, request(t, metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "default", "windows-instances", nil)},
	} {
		begun := time.Now()
		status, got := ask(t, handler(t, x.w), post(t, bytes.NewReader(reviewOf(t, x.req))))
		if status != http.StatusOK || !got.Allowed || got.UID != "some-uid" || len(got.Warnings) > 0 {
			t.Errorf("%s: status %d, %+v", name, status, got)
		}
		// Only waiting takes time here.
		if took := time.Since(begun); took > defaultLimit {
			t.Errorf("%s: it took %s, want at most %s", name, took, defaultLimit)
		}
	}
}

// body counts the bytes that are read of it.
type body struct {
	io.Reader
	read atomic.Int64
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read.Add(int64(n))
	return n, err
}

// TestNothingIsReadBeforeItsTurn: while a request is answered, a few wait and the others are turned away, and nothing of any of them is read.
func TestNothingIsReadBeforeItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, leave := make(chan struct{}, 100), make(chan struct{})
		h := newDoor(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			entered <- struct{}{}
			<-leave
		}), time.Second)
		const asked = mostWaiting + 5
		bodies, statuses := make([]*body, asked), make(chan int, asked)
		for i := range bodies {
			bodies[i] = &body{Reader: strings.NewReader(`{}`)}
			go func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, post(t, bodies[i]))
				statuses <- w.Code
			}()
		}
		synctest.Wait()
		read := 0
		for _, b := range bodies {
			if b.read.Load() > 0 {
				read++
			}
		}
		if len(entered) != 1 || read != 1 || len(statuses) != 5 {
			t.Errorf("%d are answered, of %d something is read, %d are turned away; want 1, 1 and 5", len(entered), read, len(statuses))
		}
		time.Sleep(time.Second) // the limit of those who wait
		synctest.Wait()
		if len(entered) != 1 || len(statuses) != asked-1 {
			t.Errorf("after the limit %d were answered and %d turned away", len(entered), len(statuses))
		}
		close(leave)
		synctest.Wait()
		turnedAway := 0
		for range asked {
			if <-statuses == http.StatusTooManyRequests {
				turnedAway++
			}
		}
		if turnedAway != asked-1 {
			t.Errorf("%d were turned away", turnedAway)
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, post(t, strings.NewReader(`{}`))); w.Code != http.StatusOK || len(entered) != 2 {
			t.Errorf("the place was not given back: status %d", w.Code)
		}
	})
}

// TestRequestsThatAreTurnedAway before anything of them is decoded.
func TestRequestsThatAreTurnedAway(t *testing.T) {
	for name, tt := range map[string]struct {
		text, contentType string
		want              int
	}{
		"a request":                  {`{}`, "application/json", http.StatusOK},
		"one with its character set": {`{}`, "application/json; charset=utf-8", http.StatusOK},
		"too many bytes":             {`"` + strings.Repeat("x", mostBytes) + `"`, "application/json", http.StatusRequestEntityTooLarge},
		"too many values":            {`[` + strings.Repeat(`{},`, mostValues) + `0]`, "application/json", http.StatusRequestEntityTooLarge},
		"as many as there may be":    {`[` + strings.Repeat(`0,`, mostValues-1) + `0]`, "application/json", http.StatusOK},
		"YAML":                       {"kind: AdmissionReview\n", "application/json", http.StatusBadRequest},
		"a stream of documents":      {"{}\n{}", "application/json", http.StatusBadRequest},
		"protobuf":                   {"k8s\x00", "application/json", http.StatusBadRequest},
		"nothing":                    {"", "application/json", http.StatusBadRequest},
		"another type":               {"{}", "application/yaml", http.StatusUnsupportedMediaType},
		"no type":                    {"{}", "", http.StatusUnsupportedMediaType},
	} {
		reached := false
		h := newDoor(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			text, err := io.ReadAll(r.Body)
			reached = err == nil && string(text) == tt.text
		}), time.Hour)
		r := post(t, strings.NewReader(tt.text))
		r.Header.Set("Content-Type", tt.contentType)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.want || reached != (tt.want == http.StatusOK) {
			t.Errorf("%s: status %d, reached %t", name, w.Code, reached)
		}
		if closed := w.Header().Get("Connection") == "close"; closed == reached {
			t.Errorf("%s: its connection is closed: %t", name, closed)
		}
	}
}

// TestABodyThatDoesNotComeGivesItsPlaceBack: a connection that sends headers and then nothing is closed after the limit.
func TestABodyThatDoesNotComeGivesItsPlaceBack(t *testing.T) {
	h := newDoor(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), 100*time.Millisecond)
	server := httptest.NewServer(h)
	defer server.Close()
	silent, send := io.Pipe()
	defer send.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, silent)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	// It either has an answer or its connection is closed.
	if response, err := server.Client().Do(r); err == nil {
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			t.Error("a request without its body is answered")
		}
	}
	if len(h.inside)+len(h.waiting) > 0 {
		t.Error("it keeps its place")
	}
}

// TestWhoeverAsksAllTheTimeTakesNoProcessor: requests are answered at a pace.
func TestWhoeverAsksAllTheTimeTakesNoProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, each := range []time.Duration{100 * time.Millisecond, time.Second, time.Minute} {
			var worked time.Duration
			h := newDoor(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				time.Sleep(each)
				worked += each
			}), time.Second)
			begun := time.Now()
			for time.Since(begun) < 20*time.Minute {
				h.ServeHTTP(httptest.NewRecorder(), post(t, strings.NewReader(`{}`)))
				time.Sleep(100 * time.Millisecond)
			}
			// A request is not interrupted: what the last one takes comes on top.
			most := burst + each + time.Duration(time.Since(begun).Seconds()*float64(share))
			if worked > most || worked < most/2 {
				t.Errorf("requests of %s: in 20 minutes, %s were worked on them, want at most %s", each, worked, most)
			}
		}
	})
}

// TestOneRequestTakesLittleMemory, whatever it has in it: the largest that are read, of the smallest values.
func TestOneRequestTakesLittleMemory(t *testing.T) {
	const most = 256 << 20
	c := cluster(t, 1)
	for name, element := range map[string]string{"objects": `{"":{}},`, "lists": `[[]],`, "texts": `"",`, "one text": ""} {
		text := `"` + strings.Repeat("x", mostBytes-4096) + `"`
		if values := strings.Count(element, ",") + strings.Count(element, "{") + strings.Count(element, "["); values > 0 {
			text = "[" + strings.Repeat(element, (mostValues-100)/values) + "0]"
		}
		req := mirror(t, "quay.io")
		req.Object.Raw = []byte(`{"apiVersion":"config.openshift.io/v1","kind":"ImageDigestMirrorSet","metadata":{"name":"new"},"spec":{"x":` + text + `}}`)
		sent := reviewOf(t, req)
		w := warner(c)
		w.Limit = time.Hour
		h := handler(t, w)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		status, _ := ask(t, h, post(t, bytes.NewReader(sent)))
		runtime.ReadMemStats(&after)
		taken := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: a request of %d bytes, status %d: %d MiB were allocated", name, len(sent), status, taken>>20)
		if status != http.StatusOK || taken > most {
			t.Errorf("%s: a request of %d bytes allocates %d MiB", name, len(sent), taken>>20)
		}
	}
}

// TestAliasesOfYAMLTakeNoMemory: the settings are one value of a request, and 3 bytes of an alias stand for as much as its anchor has.
func TestAliasesOfYAMLTakeNoMemory(t *testing.T) {
	req := mirror(t, "quay.io")
	req.Kind, req.Namespace, req.Name = metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, gather.OperatorNamespace, render.SettingsConfigMap
	text := "drift: &a " + strings.Repeat("x", 128<<10) + "\nkubelet: [" + strings.Repeat("*a,", 2000) + "1]\n"
	object := corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name},
		Data: map[string]string{render.SettingsKey: text},
	}
	var err error
	if req.Object.Raw, err = json.Marshal(object); err != nil {
		t.Fatal(err)
	}
	w := warner(cluster(t, 1))
	w.Limit = time.Hour
	h, sent := handler(t, w), reviewOf(t, req)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	status, got := ask(t, h, post(t, bytes.NewReader(sent)))
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 100<<20 {
		t.Errorf("a request of %d bytes allocates %d MiB", len(sent), taken>>20)
	}
	if status != http.StatusOK || !strings.Contains(strings.Join(got.Warnings, " "), "refused") {
		t.Errorf("status %d, %q", status, got.Warnings)
	}
}

// TestAnswersOverHTTP: what an API server hears.
func TestAnswersOverHTTP(t *testing.T) {
	w := warner(cluster(t, 1))
	w.Limit = time.Hour
	status, got := ask(t, handler(t, w), post(t, bytes.NewReader(reviewOf(t, mirror(t, "quay.io")))))
	if diff := cmp.Diff([]string{"1 Windows node changes without a restart"}, got.Warnings); status != http.StatusOK || !got.Allowed || diff != "" {
		t.Errorf("status %d (-want +got):\n%s", status, diff)
	}
}
