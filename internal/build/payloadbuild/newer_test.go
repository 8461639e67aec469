package payloadbuild

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"wmco/payload"
)

// serveVersions is a module proxy that lists some versions and serves others too (https://go.dev/ref/mod#goproxy-protocol). It is the only one of
// the test's go command.
func serveVersions(t *testing.T, listed, served string) {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		version := strings.TrimSuffix(filepath.Base(r.URL.Path), filepath.Ext(r.URL.Path))
		switch {
		case filepath.Base(r.URL.Path) == "list":
			fmt.Fprintln(w, strings.ReplaceAll(listed, " ", "\n"))
		case !strings.Contains(served+" ", version+" "):
			http.Error(w, "This module version is not available.", http.StatusForbidden)
		case strings.HasSuffix(r.URL.Path, ".info"):
			fmt.Fprintf(w, `{"Version":%q}`, version)
		default:
			fmt.Fprintln(w, "module example.com/m")
		}
	}))
	t.Cleanup(proxy.Close)
	t.Setenv("GOPROXY", proxy.URL)
	t.Setenv("GOSUMDB", "off")
}

func TestNewerVersionsAreAskedForByName(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module x\n\ngo 1.26.0\n", "go.sum": ""} {
		path := filepath.Join(root, "payload", "m", name)
		if err := writeFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	newer := func(t *testing.T, version string) string {
		o := Options{Root: root, Caches: t.TempDir()} // what go has read once, it does not ask for again
		return o.newerVersions(t.Context(), payload.Component{Name: "m", Module: "example.com/m", Version: version})
	}
	for name, tt := range map[string]struct{ listed, served, want string }{
		"nothing is newer":                          {"v1.35.4", "v1.35.4", "nothing newer is served"},
		"the list has the newest":                   {"v1.35.4 v1.35.5", "v1.35.4 v1.35.5", "v1.35.5 is available"},
		"the list ends, and one between is refused": {"v1.35.4", "v1.35.4 v1.35.5 v1.35.6 v1.35.8", "v1.35.8 is available"},
		"more than one question is needed":          {"v1.35.4", "v1.35.4 v1.35.8 v1.35.9 v1.35.12 v1.35.13", "v1.35.13 is available"},
		"another minor version is listed too":       {"v1.35.4 v1.36.0", "v1.35.5 v1.36.0", "v1.35.5 and v1.36.0 are available"},
		"there is no list":                          {"", "v1.35.6", "v1.35.6 is available"},
		"the next minor version is not listed":      {"", "v1.36.0 v1.36.1", "v1.36.1 is available"},
		"a patch and a minor version, not listed":   {"", "v1.35.5 v1.36.2", "v1.35.5 and v1.36.2 are available"},
	} {
		t.Run(name, func(t *testing.T) {
			serveVersions(t, tt.listed, tt.served)
			got := newer(t, "v1.35.4")
			if want := "example.com/m v1.35.4: " + tt.want; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	t.Run("the proxy is not reached", func(t *testing.T) {
		serveVersions(t, "", "")
		t.Setenv("GOPROXY", "http://127.0.0.1:1")
		got := newer(t, "v1.35.4")
		if !strings.Contains(got, "does not answer") {
			t.Error(got)
		}
	})
	t.Run("the next minor version has a component of its own", func(t *testing.T) {
		serveVersions(t, "", "v1.35.99 v1.36.0")
		o, releases := Options{Root: root, Caches: t.TempDir()}, payload.Releases()
		first := payload.Component{Name: "m", Module: "k8s.io/kubernetes", Version: "v1.35.98"}
		if got := o.newerVersions(t.Context(), first); got != "k8s.io/kubernetes v1.35.98: v1.35.99 is available" {
			t.Error(got)
		}
		last := payload.Component{Name: "m", Module: "k8s.io/kubernetes", Version: releases[len(releases)-1].Version}
		serveVersions(t, "", "v1.38.1")
		if got := o.newerVersions(t.Context(), last); !strings.HasSuffix(got, ": v1.38.1 is available") {
			t.Error(got)
		}
	})
	t.Run("a pseudo-version has no next one", func(t *testing.T) {
		serveVersions(t, "", "")
		got := newer(t, "v0.0.0-20260707145430-b93b6a72bc15")
		if !strings.HasSuffix(got, ": nothing newer is served") {
			t.Error(got)
		}
	})
}
