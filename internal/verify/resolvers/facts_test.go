package resolvers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// source is the URL of the image reg.test/lib/img when containerd ignores the file.
const (
	source = "https://reg.test/v2/lib/img"
	mirror = "https://m.test/v2/lib/img"
)

// How containerd reads valid and invalid hosts files: the reasons for the form of the rendered ones.
func TestHowContainerdReadsHostsFile(t *testing.T) {
	const host = "[host.\"https://m.test/v2\"]\n  capabilities = [\"pull\", \"resolve\"]\n  override_path = true\n"
	tests := []struct {
		name, text string
		// want is what a pull by tag tries in 2.4.2, old in 1.7.27 if that differs.
		want, old []string
		// complains and oldComplains are true if the version logs that it cannot read the file.
		complains, oldComplains bool
	}{
		{name: "no file", want: []string{source}},
		{name: "comments only are the registry itself, and an error in the log of the old version", text: "# nothing\n", want: []string{source}, oldComplains: true},
		{name: "an empty table of hosts is the registry itself, without a complaint", text: "# nothing\n\n[host]\n", want: []string{source}},
		{name: "a mirror, then the registry itself", text: host, want: []string{mirror, source}},
		{name: "a server instead of the registry", text: "server = \"https://m.test/v2\"\noverride_path = true\n\n" + host, want: []string{mirror, mirror}},
		{name: "a server without hosts is an error in the old version", text: "server = \"https://m.test\"\n", want: []string{mirror}, old: []string{source}, oldComplains: true},
		{name: "a server with an empty table of hosts", text: "server = \"https://m.test\"\n[host]\n", want: []string{mirror}},
		{name: "a server that can only push is not used", text: "server = \"https://reg.test/v2\"\ncapabilities = [\"push\"]\n\n[host]\n", want: []string{}},
		{name: "a host twice", text: host + host, want: []string{source}, complains: true, oldComplains: true},
		{name: "half a file", text: host[:30], want: []string{source}, complains: true, oldComplains: true},
		{name: "a capability that does not exist", text: strings.Replace(host, "pull", "pul", 1), want: []string{source}, complains: true, oldComplains: true},
		{name: "no capabilities means all", text: "[host.\"https://m.test\"]\n  capabilities = []\n", want: []string{mirror, source}},
		{name: "pull alone resolves no tag", text: strings.Replace(host, ", \"resolve\"", "", 1), want: []string{source}},
		{name: "a byte order mark", text: "\ufeff" + host, want: []string{source}, old: []string{mirror, source}, complains: true},
		{name: "carriage returns", text: strings.ReplaceAll(host, "\n", "\r\n"), want: []string{mirror, source}},
		{name: "unknown keys", text: host + "  color = \"red\"\n", want: []string{mirror, source}},
		{name: "a server below a host belongs to the host", text: host + "server = \"https://m.test\"\n", want: []string{mirror, source}},
		{name: "a backslash in a string", text: host + "  ca = \"C:\\k\\ca.crt\"\n", want: []string{source}, complains: true, oldComplains: true},
		{name: "a header after its host", text: host + "  [host.\"https://m.test/v2\".header]\n    Authorization = \"Basic eA==\"\n", want: []string{mirror, source}},
		{name: "a path without override_path", text: "[host.\"https://m.test/org\"]\n", want: []string{"https://m.test/org/v2/lib/img", source}},
		{name: "a path after the version", text: "[host.\"https://m.test/v2/org\"]\n", want: []string{"https://m.test/v2/org/v2/lib/img", source}},
		{name: "a path after the version with override_path", text: "[host.\"https://m.test/v2/org\"]\n  override_path = true\n", want: []string{"https://m.test/v2/org/lib/img", source}},
		{name: "no version with override_path", text: "[host.\"https://m.test\"]\n  override_path = true\n", want: []string{"https://m.test/lib/img", source}},
		{name: "no scheme", text: "[host.\"m.test:5000\"]\n", want: []string{"https://m.test:5000/v2/lib/img", source}},
		{name: "no scheme and a name that begins with http", text: "[host.\"httpbin.test\"]\n", want: []string{":///httpbin.test/v2/lib/img", source}},
		{name: "http without TLS", text: "[host.\"http://m.test\"]\n", want: []string{"http://m.test/v2/lib/img", source}},
		{name: "http with skip_verify tries TLS first", text: "[host.\"http://m.test\"]\n  skip_verify = true\n", want: []string{"any://m.test/v2/lib/img", source}},
		{name: "http with skip_verify on port 80 does not try TLS", text: "[host.\"http://m.test:80\"]\n  skip_verify = true\n", want: []string{"http://m.test:80/v2/lib/img", source}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			files := Files{}
			if test.text != "" {
				files["reg.test"] = test.text
			}
			root := t.TempDir()
			if err := files.Write(root); err != nil {
				t.Fatal(err)
			}
			for _, e := range Engines() {
				want, complains := test.want, test.complains
				if e.Version == "1.7.27" {
					complains = test.oldComplains
					if test.old != nil {
						want = test.old
					}
				}
				hosts, err := e.Hosts(Client{Root: root}, "reg.test")
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, URLs(hosts, "lib/img", Tag)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", e.Version, diff)
				}
				if lines := complaints.take(); (len(lines) > 0) != complains {
					t.Errorf("%s: log lines %q", e.Version, lines)
				}
			}
		})
	}
}

// The rule of Windows is in package windir.
func TestDirectoryThatContainerdReads(t *testing.T) {
	tests := []struct {
		name, registry string
		directories    []string
		want           string
	}{
		{name: "of its own", registry: "reg.test", directories: []string{"reg.test", "_default"}, want: "reg.test"},
		{name: "with a port", registry: "reg.test:5000", directories: []string{"reg.test_5000_", "reg.test", "_default"}, want: "reg.test_5000_"},
		{name: "a port is another registry", registry: "reg.test:5000", directories: []string{"reg.test", "_default"}, want: "_default"},
		{name: "for all others", registry: "other.test", directories: []string{"reg.test", "_default"}, want: "_default"},
		{name: "an empty one stands before the default", registry: "reg.test", directories: []string{"reg.test/", "_default"}, want: ""},
	}
	for _, test := range tests {
		root := t.TempDir()
		for _, d := range test.directories {
			if err := os.MkdirAll(filepath.Join(root, d), 0o700); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(d, "/") {
				continue
			}
			text := "server = \"https://" + strings.ReplaceAll(d, "_", "-") + ".dir\"\n[host]\n"
			if err := (Files{d: text}).Write(root); err != nil {
				t.Fatal(err)
			}
		}
		want := "https://" + test.registry + "/v2/img"
		if test.want != "" {
			want = "https://" + strings.ReplaceAll(test.want, "_", "-") + ".dir/v2/img"
		}
		for _, e := range Engines() {
			hosts, err := e.Hosts(Client{Root: root}, test.registry)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{want}, URLs(hosts, "img", Tag)); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", test.name, e.Version, diff)
			}
		}
	}
}
