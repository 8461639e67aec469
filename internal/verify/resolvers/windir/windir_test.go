package windir

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/internal/verify/resolvers"
	"wmco/render/mirrors"
)

// tries returns the URLs of an image in a registry.
func tries(t *testing.T, e resolvers.Engine, root, registry string) []string {
	t.Helper()
	hosts, err := e.Hosts(resolvers.Client{Root: root}, registry)
	if err != nil {
		t.Fatalf("%s: %s: %v", e.Version, registry, err)
	}
	return resolvers.URLs(hosts, "app/img", resolvers.Tag)
}

func write(t *testing.T, files resolvers.Files) string {
	t.Helper()
	root := t.TempDir()
	if err := files.Write(root); err != nil {
		t.Fatal(err)
	}
	return root
}

// containerd finds the file that is rendered for each registry, with and without a port.
func TestRegistriesFindTheirRenderedFiles(t *testing.T) {
	in := mirrors.Inputs{Scopes: mirrors.Scopes{
		Ref: bundle.Ref{Kind: "Image", Name: "cluster"}, Allowed: []string{"source.test", "source.test:5000", "source.test5000", "docker.io", "localhost:5000", "open.test:443"},
	}}
	for source, mirror := range map[string]string{
		"source.test": "whole.test", "source.test:5000": "port.test:6000/o", "source.test5000": "digits.test", "docker.io": "hub.test/hub", "localhost:5000": "local.test",
	} {
		in.Sets = append(in.Sets, mirrors.Set{Kind: mirrors.TagSet, Ref: bundle.Ref{Kind: "ImageTagMirrorSet", Name: source}, Source: source, Mirrors: []string{mirror}, Policy: mirrors.NeverContactSource})
	}
	files, findings, err := resolvers.Render(in, mirrors.Closed)
	if err != nil || findings.Refused() {
		t.Fatalf("%v %+v", err, findings)
	}
	want := map[string][]string{
		"source.test":      {"https://whole.test/v2/app/img", "https://whole.test/v2/app/img"},
		"source.test:5000": {"https://port.test:6000/v2/o/app/img", "https://port.test:6000/v2/o/app/img"},
		"source.test5000":  {"https://digits.test/v2/app/img", "https://digits.test/v2/app/img"},
		"docker.io":        {"https://hub.test/v2/hub/app/img", "https://hub.test/v2/hub/app/img"},
		"localhost:5000":   {"https://local.test/v2/app/img", "https://local.test/v2/app/img"},
		"open.test:443":    {"https://open.test:443/v2/app/img"},
		// Not allowed, so _default applies to them.
		"other.test": {}, "other.test:5000": {}, "open.test": {},
	}
	if runtime.GOOS == "windows" {
		// Names of folders are case-insensitive there, and image names may have any case.
		want["Source.TEST:5000"] = want["source.test:5000"]
	}
	root := write(t, files)
	for _, e := range resolvers.Engines() {
		got := map[string][]string{}
		for registry := range want {
			got[registry] = tries(t, e, root, registry)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", e.Version, diff)
		}
	}
}

// The rule itself, with files written by hand.
func TestPrecedenceOfDirectories(t *testing.T) {
	server := func(name string) string { return "server = \"https://" + name + ".dir\"\n[host]\n" }
	all := resolvers.Files{"reg.test_5000_": server("underscores"), "reg.test5000": server("digits"), "reg.test": server("name"), "_default": server("default")}
	without := func(names ...string) resolvers.Files {
		files := resolvers.Files{}
		for name, text := range all {
			files[name] = text
		}
		for _, name := range names {
			delete(files, name)
		}
		return files
	}
	windows := func(there, elsewhere string) string {
		if runtime.GOOS == "windows" {
			return there
		}
		return elsewhere
	}
	tests := []struct {
		name, registry string
		files          resolvers.Files
		want           string
	}{
		{name: "underscores come first", registry: "reg.test:5000", files: all, want: "underscores"},
		{name: "then, on Windows, the name without its colon", registry: "reg.test:5000", files: without("reg.test_5000_"), want: windows("digits", "default")},
		{name: "never the name without its port", registry: "reg.test:5000", files: without("reg.test_5000_", "reg.test5000"), want: "default"},
		{name: "a name without a port", registry: "reg.test", files: all, want: "name"},
		{name: "a name without a file", registry: "reg.test", files: without("reg.test"), want: "default"},
		{name: "a name that looks like one without its colon", registry: "reg.test5000", files: all, want: "digits"},
	}
	for _, test := range tests {
		root := write(t, test.files)
		for _, e := range resolvers.Engines() {
			if diff := cmp.Diff([]string{"https://" + test.want + ".dir/v2/app/img"}, tries(t, e, root, test.registry)); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", test.name, e.Version, diff)
			}
		}
	}
}

// A directory without a file hides _default, so a directory must be removed with its file.
func TestEmptyDirectoryHidesTheDefault(t *testing.T) {
	root := write(t, resolvers.Files{"_default": "server = \"https://default.dir\"\n[host]\n"})
	if err := os.Mkdir(filepath.Join(root, "reg.test_5000_"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, e := range resolvers.Engines() {
		if diff := cmp.Diff([]string{"https://reg.test:5000/v2/app/img"}, tries(t, e, root, "reg.test:5000")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", e.Version, diff)
		}
	}
}
