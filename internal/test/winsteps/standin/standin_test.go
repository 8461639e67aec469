package standin

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
)

// client trusts the CA of a folder and nothing else.
func client(t *testing.T, folder string) *http.Client {
	t.Helper()
	ca, err := os.ReadFile(filepath.Join(folder, FileCA))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
}

// serve serves a handler until the end of the test.
func serve(t *testing.T, h http.Handler) (*http.Client, string) {
	t.Helper()
	folder := t.TempDir()
	if err := WriteCertificates(folder, "win-a", time.Now()); err != nil {
		t.Fatal(err)
	}
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	stop, err := Listen(t.Context(), address, folder, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return client(t, folder), "https://" + address
}

func do(t *testing.T, c *http.Client, method, url, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// publishedFolder returns a folder with a published bundle.
func publishedFolder(t *testing.T) string {
	t.Helper()
	folder, d := t.TempDir(), bundle.Of([]byte("x"))
	whole, err := bundle.DigestLayers(d, d)
	if err != nil {
		t.Fatal(err)
	}
	text, err := published.Desired{
		Bundle: whole, MaxImpact: bundle.ImpactRestart, Namespace: "n", Cluster: published.Layer{Digest: d, Parts: 1}, Node: published.Layer{Digest: d, Inline: []byte("y")},
	}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{FileDesired: text, "part-1": "the layer"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestTheAPIServerHasOneNode(t *testing.T) {
	s := &APIServer{Node: "win-a", Now: time.Now}
	c, server := serve(t, s)
	if _, err := s.Publish(publishedFolder(t)); err != nil {
		t.Fatal(err)
	}
	var node corev1.Node
	if status, text := do(t, c, http.MethodGet, server+"/api/v1/nodes/win-a", ""); status != http.StatusOK || json.Unmarshal([]byte(text), &node) != nil || node.Status.Conditions[0].Type != corev1.NodeReady {
		t.Errorf("the Node: %d, %s", status, text)
	}
	var secret corev1.Secret
	if status, text := do(t, c, http.MethodGet, server+"/api/v1/namespaces/n/secrets/part-1", ""); status != http.StatusOK || json.Unmarshal([]byte(text), &secret) != nil || string(secret.Data[published.SecretKey]) != "the layer" {
		t.Errorf("the Secret: %d, %s", status, text)
	}
	for _, path := range []string{"/api/v1/nodes/win-b", "/api/v1/namespaces/n/secrets/part-2", "/api/v1/pods"} {
		if status, text := do(t, c, http.MethodGet, server+path, ""); status != http.StatusNotFound || !strings.Contains(text, `"reason":"NotFound"`) {
			t.Errorf("%s: %d, %s", path, status, text)
		}
	}
	if status, _ := do(t, c, http.MethodPost, server+"/api/v1/namespaces/default/events", `{"reason":"BundleApplied"}`); status != http.StatusCreated || len(s.Events()) != 1 {
		t.Errorf("the Event: %d, %v", status, s.Events())
	}
}

// TestAWatchSeesReports: a watch begins with the Node, and gets it again when its status is written.
func TestAWatchSeesReports(t *testing.T) {
	s := &APIServer{Node: "win-a", Now: time.Now}
	c, server := serve(t, s)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/api/v1/nodes?watch=true&sendInitialEvents=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	next := func() (kind string, m metav1.PartialObjectMetadata) {
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
		event := struct {
			Type   string                       `json:"type"`
			Object metav1.PartialObjectMetadata `json:"object"`
		}{}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatal(err)
		}
		return event.Type, event.Object
	}
	if kind, m := next(); kind != "ADDED" || m.Name != "win-a" {
		t.Errorf("%s %+v", kind, m)
	}
	if kind, m := next(); kind != "BOOKMARK" || m.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("%s %+v", kind, m)
	}
	report, err := published.Report{State: published.StateApplied}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{published.ReportAnnotation: report}}})
	if err != nil {
		t.Fatal(err)
	}
	if status, text := do(t, c, http.MethodPatch, server+"/api/v1/nodes/win-a/status", string(patch)); status != http.StatusOK {
		t.Errorf("%d, %s", status, text)
	}
	if kind, m := next(); kind != "MODIFIED" || m.Annotations[published.ReportAnnotation] != report {
		t.Errorf("%s %+v", kind, m)
	}
	if got, ok := s.Report(); !ok || got.State != published.StateApplied {
		t.Errorf("%v %+v", ok, got)
	}
}

func TestTheRegistryHandsOn(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "upstream "+r.URL.Path) }))
	defer upstream.Close()
	x := &Registry{Upstream: upstream.URL}
	c, server := serve(t, x)
	if status, text := do(t, c, http.MethodGet, server+"/v2/a/manifests/1", ""); status != http.StatusOK || text != "upstream /v2/a/manifests/1" {
		t.Errorf("%d, %s", status, text)
	}
	if asked := strings.Join(x.Asked(), " "); asked != "/v2/a/manifests/1" {
		t.Errorf("asked for %s", asked)
	}
}
