package modules

import (
	"archive/zip"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// startProxy starts a module proxy (https://go.dev/ref/mod#goproxy-protocol) with modules at v1.0.0, each of one package, which refuses the zips of those
// that refused names. It is the only proxy of the test's go command.
func startProxy(t *testing.T, refused map[string]bool) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		module, file, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/@v/")
		switch kind := filepath.Ext(file); {
		case kind == ".zip" && !refused[module]:
			_, _ = w.Write(moduleZip(t, module))
		case kind == ".info":
			fmt.Fprint(w, `{"Version":"v1.0.0"}`)
		case kind == ".mod":
			fmt.Fprintf(w, "module %s\n", module)
		default:
			http.Error(w, "This module version is not available.", http.StatusForbidden)
		}
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"GOPROXY": server.URL, "GOSUMDB": "off", "GOFLAGS": "-modcacherw", "GOMODCACHE": t.TempDir(), "GONOSUMDB": "", "GOPRIVATE": "", "GONOPROXY": "",
	} {
		t.Setenv(name, value)
	}
}

// moduleZip returns a module with one package (https://go.dev/ref/mod#zip-files).
func moduleZip(t *testing.T, module string) []byte {
	var out bytes.Buffer
	zw := zip.NewWriter(&out)
	for file, text := range map[string]string{"go.mod": "module " + module + "\n", "x.go": "package x\n"} {
		f, err := zw.Create(module + "@v1.0.0/" + file)
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err != nil {
			t.Error(err)
		}
	}
	if err := zw.Close(); err != nil {
		t.Error(err)
	}
	return out.Bytes()
}

// writeModule writes a module that imports packages of two others, with its go.sum. The module cache is empty afterwards.
func writeModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.com/main\n\ngo 1.26.0\n\nrequire (\n\ta.io/b v1.0.0\n\tc.io/d v1.0.0\n)\n",
		"main.go": "package main\n\nimport (\n\t_ \"a.io/b\"\n\t_ \"c.io/d\"\n)\n\nfunc main() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runGo(t, dir, "list", "-mod=mod", "-deps", ".")
	runGo(t, dir, "clean", "-modcache")
	return dir
}

func runGo(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %q: %v\n%s", args, err, out)
	}
}
