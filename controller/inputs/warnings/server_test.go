package warnings

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	certutil "k8s.io/client-go/util/cert"

	policies "wmco/deploy/admission"
	"wmco/internal/test/testenv"
)

// TestTheServer answers over TLS, one request after the other on a connection, as long as the process leads.
func TestTheServer(t *testing.T) {
	certificates := t.TempDir()
	text, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string][]byte{"tls.crt": text, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(certificates, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := warner(cluster(t, 1))
	w.Limit = time.Hour
	r := runnable{Serving: Serving{Address: free.Addr().String(), Certificates: certificates}, handler: handler(t, w), log: w.Log}
	if !r.NeedLeaderElection() {
		t.Error("it is served by processes that do not lead, whose caches are not filled")
	}
	if err := r.Start(t.Context()); err != nil {
		t.Errorf("an address that is taken ends the operator: %v", err)
	}
	_ = free.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	c := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // it is the one of the test
	sent := reviewOf(t, mirror(t, "quay.io"))
	var answer admissionv1.AdmissionReview
	if err := testenv.Eventually(t.Context(), "an answer", func() bool {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+r.Address+policies.WarningsPath, bytes.NewReader(sent))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		response, err := c.Do(q)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		if response.ProtoMajor != 1 {
			t.Errorf("%s", response.Proto)
		}
		return json.NewDecoder(response.Body).Decode(&answer) == nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1 Windows node changes without a restart"}, answer.Response.Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.CloseIdleConnections()
	// Those who take all connections keep others waiting, and no longer than they have them. The goroutine that accepts waits then.
	var all []net.Conn
	for range mostConnections + 1 {
		conn, err := net.Dial("tcp", r.Address)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, conn)
	}
	full, enough := context.WithTimeout(t.Context(), time.Minute)
	defer enough()
	if err := testenv.Eventually(full, "a server that accepts no more", func() bool {
		var stacks bytes.Buffer
		return pprof.Lookup("goroutine").WriteTo(&stacks, 1) == nil && bytes.Contains(stacks.Bytes(), []byte("limitListener).acquire"))
	}); err != nil {
		t.Fatal(err)
	}
	last := tls.Client(all[mostConnections], &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is the one of the test
	_ = all[0].Close()
	if err := last.HandshakeContext(ctx); err != nil {
		t.Error(err)
	}
	for _, conn := range all {
		_ = conn.Close()
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
