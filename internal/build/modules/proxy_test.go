package modules

import (
	"archive/zip"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// proxy is a module proxy (https://go.dev/ref/mod#goproxy-protocol) that serves a subset of its modules.
type proxy struct {
	mu sync.Mutex
	// versions are all versions; it does not list unlisted ones and does not serve refused ones.
	versions          map[string][]string
	unlisted, refused map[string]bool
}

// newProxy starts a proxy with the named MODULE@VERSION, each with one package. It is the only proxy of the test's go
// command.
func newProxy(t *testing.T, has ...string) *proxy {
	t.Helper()
	p := &proxy{versions: map[string][]string{}, unlisted: map[string]bool{}, refused: map[string]bool{}}
	for _, text := range has {
		module, version, _ := strings.Cut(text, "@")
		p.versions[module] = append(p.versions[module], version)
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"GOPROXY": server.URL, "GOSUMDB": "off", "GOFLAGS": "-modcacherw", "GOMODCACHE": t.TempDir(), "GONOSUMDB": "", "GOPRIVATE": "", "GONOPROXY": "",
	} {
		t.Setenv(name, value)
	}
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	module, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/@v/")
	if rest == "list" {
		listed := slices.DeleteFunc(slices.Clone(p.versions[module]), func(v string) bool { return p.unlisted[module+"@"+v] })
		fmt.Fprintln(w, strings.Join(listed, "\n"))
		return
	}
	version, kind := strings.TrimSuffix(rest, filepath.Ext(rest)), filepath.Ext(rest)
	name := module + "@" + version
	if !slices.Contains(p.versions[module], version) || kind == ".zip" && p.refused[name] {
		http.Error(w, "This module version is not available.", http.StatusForbidden)
		return
	}
	switch kind {
	case ".info":
		fmt.Fprintf(w, `{"Version":%q}`, version)
	case ".mod":
		fmt.Fprintf(w, "module %s\n", module)
	case ".zip":
		_, _ = w.Write(archive(name))
	}
}

// archive returns a module with one package (https://go.dev/ref/mod#zip-files).
func archive(name string) []byte {
	var out bytes.Buffer
	zw := zip.NewWriter(&out)
	for file, text := range map[string]string{"go.mod": "module " + strings.Split(name, "@")[0] + "\n", "x.go": "package x\n"} {
		f, err := zw.Create(name + "/" + file)
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := zw.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// writeModule writes a module that imports packages of other modules, with its go.sum, into a folder that git tracks.
func writeModule(t *testing.T, requires ...string) string {
	t.Helper()
	dir := t.TempDir()
	mod, source := "module example.com/main\n\ngo 1.26.0\n", "package main\n"
	for _, text := range requires {
		module, version, _ := strings.Cut(text, "@")
		mod += fmt.Sprintf("require %s %s\n", module, version)
		source += fmt.Sprintf("import _ %q\n", module)
	}
	for name, text := range map[string]string{"go.mod": mod, "main.go": source + "func main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range [][]string{{"go", "mod", "download", "-json"}, {"go", "list", "-mod=mod", "-deps", "."}, {"go", "clean", "-modcache"}, {"git", "init", "-q"}, {"git", "add", "."}} {
		if _, err := run(t.Context(), command{dir: dir, args: c}); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
