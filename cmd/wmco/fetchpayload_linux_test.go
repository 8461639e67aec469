package main

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"
)

// imageServer is a registry with golden/payload as an image of one layer, for who has the password.
func imageServer(t *testing.T) (host, ca string, layers *atomic.Int64) {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	files, err := os.ReadDir(goldenPayload)
	must(t, err)
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(goldenPayload, f.Name()))
		must(t, err)
		must(t, w.WriteHeader(&tar.Header{Name: "payload/" + f.Name(), Mode: 0o644, Size: int64(len(data))}))
		_, err = w.Write(data)
		must(t, err)
	}
	must(t, w.Close())
	manifest, err := json.Marshal(map[string]any{"layers": []any{map[string]any{"digest": digest.FromBytes(layer.Bytes()), "size": layer.Len()}}})
	must(t, err)
	layers = &atomic.Int64{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		switch path := strings.TrimPrefix(r.URL.Path, "/v2/team/wmco/"); {
		case password != "sesame":
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		case path == "manifests/v1":
			_, _ = w.Write(manifest)
		case strings.HasPrefix(path, "blobs/"):
			layers.Add(1)
			_, _ = w.Write(layer.Bytes())
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	ca = filepath.Join(t.TempDir(), "ca.crt")
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	return strings.TrimPrefix(server.URL, "https://"), ca, layers
}

// TestThePayloadOfAnImage: a preview with the executables of an image is that with the folder of them. They are fetched once, with the login of podman.
func TestThePayloadOfAnImage(t *testing.T) {
	t.Parallel()
	host, ca, layers := imageServer(t)
	wmco, folder := program(t), t.TempDir()
	login := filepath.Join(folder, "auth.json")
	must(t, os.WriteFile(login, fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, host+"/team", base64.StdEncoding.EncodeToString([]byte("me:sesame"))), 0o600))
	render := func(payload, out string, more ...string) (string, int) {
		t.Helper()
		clusters := filepath.Join("..", "..", "golden", "clusters")
		cmd := exec.CommandContext(t.Context(), wmco, "render", "--from", filepath.Join(clusters, "common"), "--from", filepath.Join(clusters, "none"),
			"--facts", filepath.Join("..", "..", "golden", "facts", "none.json"), "--node", "win-a", "--payload", payload, "--out", filepath.Join(folder, out))
		cmd.Env = append(os.Environ(), append([]string{
			"SSL_CERT_FILE=" + ca, "XDG_CACHE_HOME=" + filepath.Join(folder, "cache"), "XDG_RUNTIME_DIR=" + folder, "XDG_CONFIG_HOME=" + folder, "DOCKER_CONFIG=" + folder, "NO_PROXY=127.0.0.1",
		}, more...)...)
		text, err := cmd.CombinedOutput()
		if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
			return string(text), failed.ExitCode()
		}
		must(t, err)
		return string(text), 0
	}
	for range 2 {
		if text, status := render("oci:"+host+"/team/wmco:v1", "fetched", "REGISTRY_AUTH_FILE="+login); status != 0 || layers.Load() != 1 {
			t.Fatalf("%d, %d layers fetched: %s", status, layers.Load(), text)
		}
	}
	if text, status := render(goldenPayload, "folder"); status != 0 {
		t.Fatalf("%d: %s", status, text)
	}
	if diff, err := exec.CommandContext(t.Context(), "diff", "-r", filepath.Join(folder, "fetched"), filepath.Join(folder, "folder")).CombinedOutput(); err != nil {
		t.Errorf("%v: %.500s", err, diff)
	}
	for name, c := range map[string]struct {
		payload string
		login   string
		status  int
		says    string
	}{
		"no login":     {"oci:" + host + "/team/wmco:v1", "", 2, "401 Unauthorized; fix: log in with podman login " + host},
		"no such tag":  {"oci:" + host + "/team/wmco:v2", login, 2, "404 Not Found: it has no such image"},
		"no registry":  {"oci:127.0.0.1:1/team/wmco:v1", "", 3, "connection refused"},
		"no name":      {"oci:wmco", "", 2, `"wmco" is not the name of an image`},
		"not a folder": {"docker:" + host + "/team/wmco:v1", "", 2, "payload.json"},
	} {
		text, status := render(c.payload, "none", "REGISTRY_AUTH_FILE="+c.login)
		if status != c.status || !strings.Contains(strings.Join(strings.Fields(text), " "), c.says) || strings.Contains(text, "sesame") {
			t.Errorf("%s: %d: %s", name, status, text)
		}
	}
}
