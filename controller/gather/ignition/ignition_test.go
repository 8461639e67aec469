package ignition

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func config(version, rest string) string {
	return fmt.Sprintf(`{"ignition":{"version":%q}%s}`, version, rest)
}

func TestFilesUnitsAndDropinsAreRead(t *testing.T) {
	// As the machine-config-operator renders: with users, links and units without contents, which are not read.
	text := config("3.5.0", `,
		"kernelArguments": {"shouldExist": ["nosmt"]},
		"passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA"]}]},
		"storage": {
			"directories": [{"path": "/etc/a"}], "links": [{"path": "/etc/b", "target": "/etc/c"}],
			"files": [
				{"path": "/etc/kubernetes/cloud.conf", "mode": 420, "overwrite": true, "user": {"name": "root"},
					"contents": {"source": "data:,a", "compression": "", "verification": {}}},
				{"path": "/etc/empty", "contents": {}},
				{"path": "/etc/append", "append": [{"source": "data:,b"}]}
			]
		},
		"systemd": {"units": [
			{"name": "kubelet.service", "enabled": true, "contents": "[Service]\nExecStart=kubelet\n",
				"dropins": [{"name": "10-a.conf", "contents": "[Service]\n"}, {"name": "20-b.conf"}]},
			{"name": "zincati.service", "mask": true, "contents": null}
		]}`)
	want := Config{
		Version: "3.5.0",
		Files: []File{
			{Field: "storage.files[0]", Path: "/etc/kubernetes/cloud.conf", Contents: Resource{Source: "data:,a"}},
			{Field: "storage.files[1]", Path: "/etc/empty"},
			{Field: "storage.files[2]", Path: "/etc/append", Appends: true},
		},
		Units: []Unit{
			{Field: "systemd.units[0]", Name: "kubelet.service", Contents: "[Service]\nExecStart=kubelet\n", Dropins: []Dropin{{"10-a.conf", "[Service]\n"}, {"20-b.conf", ""}}},
			{Field: "systemd.units[1]", Name: "zincati.service"},
		},
	}
	got, problems := ParseConfig([]byte(text))
	if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
		t.Errorf("problems %v; (-want +got):\n%s", problems, diff)
	}
}

func TestVersions(t *testing.T) {
	for _, v := range []string{"3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0", "3.6.0"} {
		if c, problems := ParseConfig([]byte(config(v, ""))); c.Version != v || len(problems) > 0 {
			t.Errorf("%s: %+v", v, problems)
		}
	}
	for _, v := range []string{"2.2.0", "3.0", "3", "3.6.1", "3.7.0", "3.7.0-experimental", "4.0.0", "9.9.9", " 3.5.0"} {
		_, problems := ParseConfig([]byte(config(v, "")))
		want := []Problem{{"ignition.version", fmt.Sprintf("version %q is not supported; use 3.0.0 to 3.6.0", v)}}
		if diff := cmp.Diff(want, problems); diff != "" {
			t.Errorf("%s (-want +got):\n%s", v, diff)
		}
	}
}

func TestFieldsThatAVersionDoesNotHaveAreNoted(t *testing.T) {
	rest := `,"kernelArguments":{},"storage":{"file":[],"luks":[],"files":[{"path":"/a","content":{},"contents":{"source":"data:,","httpHeaders":[]}}]},"systemd":{"Units":[]}`
	tests := map[string][]string{
		"3.0.0": {"kernelArguments", "storage.file", "storage.files[0].content", "storage.files[0].contents.httpHeaders", "storage.luks", "systemd.Units"},
		"3.1.0": {"kernelArguments", "storage.file", "storage.files[0].content", "storage.luks", "systemd.Units"},
		"3.2.0": {"kernelArguments", "storage.file", "storage.files[0].content", "systemd.Units"},
		"3.3.0": {"storage.file", "storage.files[0].content", "systemd.Units"},
		"3.6.0": {"storage.file", "storage.files[0].content", "systemd.Units"},
	}
	for version, want := range tests {
		c, problems := ParseConfig([]byte(config(version, rest)))
		if diff := cmp.Diff(want, c.Unknown); diff != "" || len(problems) > 0 {
			t.Errorf("%s: problems %v; (-want +got):\n%s", version, problems, diff)
		}
	}
}

func TestEveryProblemIsNamedWithItsPlace(t *testing.T) {
	tests := []struct {
		name, text string
		want       []Problem
	}{
		{"not JSON", "{\n  \"ignition\": {,\n}", []Problem{{"", "line 2, column 16: the configuration is not JSON: invalid character ',' looking for beginning of object key string"}}},
		{"cut", `{"ignition":`, []Problem{{"", "line 1, column 12: the configuration is not JSON: unexpected end of JSON input"}}},
		{"two documents", `{} {}`, []Problem{{"", "line 1, column 4: the configuration is not JSON: invalid character '{' after top-level value"}}},
		{"empty", ``, []Problem{{"", "line 1, column 1: the configuration is not JSON: unexpected end of JSON input"}}},
		{"null", `null`, []Problem{{"ignition.version", "is missing"}}},
		{"a list", `[]`, []Problem{{"", "has a list where an object is required"}, {"ignition.version", "is missing"}}},
		{"a field in another case", `{"Ignition":{"version":"3.5.0"}}`, []Problem{{"ignition.version", "is missing"}}},
		{"a field twice", `{"ignition":{"version":"3.5.0","version":"3.2.0"}}`, []Problem{{"", `duplicate field "ignition.version"`}}},
		{"version is a number", `{"ignition":{"version":3}}`, []Problem{{"ignition.version", "has a number where a string is required"}}},
		{
			"wrong types, all of them", config("3.2.0", `,"storage":{"files":[{"path":"/a","contents":"x"},{"path":["/b"]},3]},"systemd":{"units":{"name":"x"}}`),
			[]Problem{
				{"storage.files[0].contents", "has a string where an object is required"},
				{"storage.files[1].path", "has a list where a string is required"},
				{"storage.files[2]", "has a number where an object is required"},
				{"storage.files[2].path", "is missing"},
				{"systemd.units", "has an object where a list is required"},
			},
		},
		{
			"names missing, relative and twice", config("3.2.0", `,"storage":{"files":[{"path":"a"},{"path":"/b"},{"path":"/b"}]},"systemd":{"units":[{"name":"x.service","dropins":[{"name":"a.conf"},{"name":"a.conf"}]},{},{"name":"x.service"}]}`),
			[]Problem{
				{"storage.files[0].path", `"a" is not an absolute path`},
				{"systemd.units[1].name", "is missing"},
				{"storage.files[2].path", `"/b" is also storage.files[1].path`},
				{"systemd.units[0].dropins[1].name", `"a.conf" is also systemd.units[0].dropins[0].name`},
				{"systemd.units[2].name", `"x.service" is also systemd.units[0].name`},
			},
		},
		{"too large", strings.Repeat(" ", maxConfig+1), []Problem{{"", "the configuration has 16777217 bytes; at most 16777216 are read"}}},
	}
	for _, test := range tests {
		_, problems := ParseConfig([]byte(test.text))
		if diff := cmp.Diff(test.want, problems); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func zipped(t testing.TB, text string) string {
	t.Helper()
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	if _, err := zw.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return "data:;base64," + base64.StdEncoding.EncodeToString(out.Bytes())
}

func TestContentsOfFiles(t *testing.T) {
	sha := fmt.Sprintf("sha256-%x", sha256.Sum256([]byte("hello")))
	sha512of := fmt.Sprintf("sha512-%X", sha512.Sum512([]byte("hello")))
	tests := []struct {
		name     string
		resource Resource
		want     string
		err      string
	}{
		{"plain", Resource{Source: "data:,a%20b%0A"}, "a b\n", ""},
		{"a plus sign stands for itself", Resource{Source: "data:,a+b"}, "a+b", ""},
		{"base64", Resource{Source: "data:text/plain;charset=utf-8;base64,aGk="}, "hi", ""},
		{"a comma in a quoted parameter", Resource{Source: `data:text/plain;x="a,\",b";base64,aGk=`}, "hi", ""},
		{"base64 is a parameter only at the end", Resource{Source: "data:;base64;x=y,aGk="}, "aGk=", ""},
		{"bytes that are not UTF-8", Resource{Source: "data:,%ff%00"}, "\xff\x00", ""},
		{"gzip", Resource{Source: zipped(t, "hello"), Compression: "gzip"}, "hello", ""},
		{"nothing", Resource{}, "", ""},
		{"no data", Resource{Source: "data:,"}, "", ""},
		{"the hash of the uncompressed contents", Resource{Source: zipped(t, "hello"), Compression: "gzip", Hash: sha}, "hello", ""},
		{"a hash in upper case", Resource{Source: "data:,hello", Hash: sha512of}, "hello", ""},
		{"4 MiB", Resource{Source: zipped(t, strings.Repeat("0", maxContents)), Compression: "gzip"}, strings.Repeat("0", maxContents), ""},

		{"another hash", Resource{Source: "data:,hullo", Hash: sha}, "", "the contents do not match verification.hash"},
		{"an unknown hash", Resource{Source: "data:,hello", Hash: "md5-00"}, "", "verification.hash is neither sha512-<hex> nor sha256-<hex>"},
		{"a URL", Resource{Source: "https://example.com/x"}, "", "the contents are not a data URL"},
		{"no comma", Resource{Source: "data:text/plain"}, "", "the contents are a malformed data URL"},
		{"a half escape", Resource{Source: "data:,a%2"}, "", "the contents are a malformed data URL"},
		{"a line break", Resource{Source: "data:,a\nb"}, "", "the contents are a malformed data URL"},
		{"not base64", Resource{Source: "data:;base64,a"}, "", "the contents are a malformed data URL"},
		{"escapes in base64", Resource{Source: "data:;base64,aGk%3D"}, "", "the contents are a malformed data URL"},
		{"not gzip", Resource{Source: "data:,hunter2", Compression: "gzip"}, "", "the contents are not gzip: unexpected EOF"},
		{"an unknown compression", Resource{Source: "data:,x", Compression: "xz"}, "", `compression "xz" is not supported`},
		{"a bomb", Resource{Source: zipped(t, strings.Repeat("0", maxContents+1)), Compression: "gzip"}, "", "the contents have more than 4194304 bytes"},
		{"too large as it is", Resource{Source: "data:," + strings.Repeat("0", maxContents+1)}, "", "the contents have more than 4194304 bytes"},
	}
	for _, test := range tests {
		got, err := test.resource.DecodeContents()
		message := ""
		if err != nil {
			message = err.Error()
		}
		if message != test.err || err == nil && string(got) != test.want {
			t.Errorf("%s: %d bytes, error %q; want %d bytes, error %q", test.name, len(got), message, len(test.want), test.err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(config("3.5.0", `,"storage":{"files":[{"path":"/a","contents":{"source":"data:,x"}}]},"systemd":{"units":[{"name":"a","dropins":[{"name":"b"}]}]}`)))
	f.Add([]byte(`{"ignition":{"version":3}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, problems := ParseConfig(data)
		again, problemsAgain := ParseConfig(data)
		if diff := cmp.Diff(c, again) + cmp.Diff(problems, problemsAgain); diff != "" {
			t.Errorf("read twice:\n%s", diff)
		}
		if len(problems) > 0 {
			return
		}
		for _, file := range c.Files {
			if !strings.HasPrefix(file.Path, "/") {
				t.Errorf("path %q is accepted", file.Path)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add("data:,x", "", "")
	f.Add(zipped(f, "x"), "gzip", "sha256-00")
	f.Add("data:text/plain;charset=utf-8;base64,aGk=", "", "sha512-")
	f.Fuzz(func(t *testing.T, source, compression, hash string) {
		data, err := Resource{Source: source, Compression: compression, Hash: hash}.DecodeContents()
		if err == nil && len(data) > maxContents {
			t.Errorf("%d bytes", len(data))
		}
	})
}
