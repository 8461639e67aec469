package gather

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// silentServer accepts connections and answers nothing.
func silentServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
		}
	}()
	return listener.Addr().String()
}

func TestARequestWithoutAnAnswerIsNamed(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x, user: x}}],
users: [{name: x, user: {}}], clusters: [{name: x, cluster: {server: "http://` + silentServer(t) + `"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	reader, _, err := openSourcesWithin([]string{"cluster"}, nil, Kubeconfig{}, 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	_, err = Gather(t.Context(), reader, Options{})
	unreachable := (*UnreachableError)(nil)
	want := "reading cluster: discover " + wantedObjects(OperatorNamespace)[0].Kind + ": the API server gives no answer: "
	if !errors.As(err, &unreachable) || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "http://127.0.0.1") {
		t.Errorf("want %q, got %v", want, err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}
