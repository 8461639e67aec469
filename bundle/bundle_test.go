package bundle

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func example() Bundle {
	return Bundle{
		Cluster: Layer{
			Schema: Schema, Kind: LayerCluster, Stage: StageJoined,
			Files: []File{
				{Path: `C:\k\b.txt`, Digest: Of([]byte("b")), Size: 1, Access: AccessUsers, Impact: ImpactNone},
				{Path: `C:\k\A.txt`, Digest: Key("key").Of([]byte("a")), Secret: true, Access: AccessAdmins, Impact: ImpactRestart},
			},
			Environments: []Environment{{Name: "proxy", Variables: []Variable{{Name: "HTTP_PROXY", Value: "http://p", Impact: ImpactRestart}}}},
			Services:     []Service{{Name: "containerd", Start: StartAuto, Argv: []string{`C:\k\c.exe`}, Environment: "proxy", Probe: Probe{Kind: ProbeRunning}}},
		},
		Node: Layer{
			Schema: Schema, Kind: LayerNode, Stage: StageJoined,
			Services: []Service{{Name: "kubelet", Start: StartAuto, Probe: Probe{Kind: ProbeRunning}, Argv: []string{`C:\k\k.exe`}, Dependencies: []string{"containerd"}}},
		},
	}
}

func TestManifestIsCanonicalAndDecodesToItself(t *testing.T) {
	b := example()
	b.Cluster.Normalize()
	m, err := b.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := DecodeManifest(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, again); diff != "" {
		t.Errorf("decoded manifest (-want +got):\n%s", diff)
	}
	if first := again.Layers[0].Layer.Files[0].Path; first != `C:\k\A.txt` {
		t.Errorf("files are not in the order of Windows paths: %s comes first", first)
	}
}

func TestDigestDependsOnEntriesAndNotOnTheirOrderOrProvenance(t *testing.T) {
	want := digestOf(t, example())
	shuffled := example()
	shuffled.Cluster.Files[0], shuffled.Cluster.Files[1] = shuffled.Cluster.Files[1], shuffled.Cluster.Files[0]
	shuffled.Provenance = Provenance{KindFile.ID(`C:\k\b.txt`): {{Kind: "ImageDigestMirrorSet", Name: "renamed"}}}
	if got := digestOf(t, shuffled); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	changed := example()
	changed.Node.Services[0].Argv = append(changed.Node.Services[0].Argv, "--v=4")
	if digestOf(t, changed) == want {
		t.Error("another argument gives the same digest")
	}
}

func digestOf(t *testing.T, b Bundle) Digest {
	t.Helper()
	b.Cluster.Normalize()
	b.Node.Normalize()
	d, err := b.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDigestsOfSecretsAreKeyed(t *testing.T) {
	content := []byte("password")
	if d := Key(nil).Of(content); d != Masked {
		t.Errorf("without a key: %s, want masked", d)
	}
	a, b := Key("a").Of(content), Key("b").Of(content)
	if a == b || a == Of(content) {
		t.Errorf("digests of one secret under two keys, and without: %s %s %s", a, b, Of(content))
	}
	for _, d := range []Digest{Masked, a, Of(content)} {
		if err := d.Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, d := range []Digest{"", "sha256:abc", "sha512:" + Digest(strings.Repeat("a", 128)), "hmac-sha256:xyz", "md5:00"} {
		if d.Validate() == nil {
			t.Errorf("digest %q is accepted", d)
		}
	}
}

func TestSecretsAreMasked(t *testing.T) {
	s := NewSecret("hunter2")
	text, err := s.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s %q %x %d", s, s, s, s, s, s, s), fmt.Sprintf("%+v", struct{ S Secret }{s}), string(text), fmt.Sprintf("%#v", []Secret{s})} {
		if strings.Contains(shown, "hunter") || strings.Contains(shown, "68756e") {
			t.Errorf("a secret shows: %s", shown)
		}
	}
	if NewStandIn("Secret x").Masked().Reveal() != "<stand-in: Secret x is not in the inputs>" {
		t.Error("a stand-in is masked")
	}
}

func TestNewerAndMalformedManifestsAreRefused(t *testing.T) {
	b := example()
	b.Cluster.Normalize()
	m, err := b.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	var schema *SchemaError
	if _, err := DecodeManifest([]byte(`{"schema": 2, "novelty": true}`)); !errors.As(err, &schema) || schema.Have != 2 {
		t.Errorf("a newer schema: %v, want *SchemaError", err)
	}
	broken := map[string]string{
		"nothing":           "",
		"no schema":         "{}",
		"schema 0":          `{"schema": 0}`,
		"an unknown field":  strings.Replace(text, `"layers"`, `"extra": 1, "layers"`, 1),
		"something after":   text + "{}",
		"a changed entry":   strings.Replace(text, `b.txt`, `c.txt`, 1),
		"a changed digest":  strings.Replace(text, string(m.Digest), string(Of(nil)), 1),
		"a cut-off text":    text[:len(text)/2],
		"one layer":         `{"schema":1,"digest":"masked","layers":[]}`,
		"an unknown stage":  strings.Replace(text, `"stage": "joined"`, `"stage": "gone"`, 1),
		"entries unordered": strings.Replace(text, `A.txt`, `z.txt`, 1),
	}
	for name, text := range broken {
		if _, err := DecodeManifest([]byte(text)); err == nil {
			t.Errorf("a manifest with %s is accepted", name)
		}
	}
}

// U+212A and U+0130 are the only letters that fold to ASCII in Go. On NTFS they are names of their own.
func TestOnlyASCIIFolds(t *testing.T) {
	for path, want := range map[string]string{
		`C:\K\Kubelet.CONF`: `c:\k\kubelet.conf`, "C:\\\u212a\\A": "c:\\\u212a\\a", "C:\\var\\l\u0130b": "c:\\var\\l\u0130b", `C:\GRÖSSE`: `c:\grÖsse`, "": "",
	} {
		if got := FoldPath(path); got != want {
			t.Errorf("%q folds to %q, want %q", path, got, want)
		}
	}
}

func TestOtherPathsOfAHostAreAllowedToHosts(t *testing.T) {
	for _, path := range []string{`C:\k\größe`, `C:\k\x.wmco-new`, "C:\\\u212a\\x", "C:\\k\\a\x7fb", `C:\k\KUBELE~1.CON`} {
		if err := CheckHostPath(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestNonCanonicalPathsAreRefused(t *testing.T) {
	for _, good := range []string{`C:\k`, `C:\k\kubelet.conf`, `D:\a b\c.d`, `C:\k\nullable.txt`, `C:\k\com.txt`, `C:\k\com10`, `C:\ProgramData\x`, `C:\k\clock`, `C:\k\clock$s`, `C:\k\a~b`, `C:\k\~`, `C:\k\kubelet~1.conf`, `C:\k\x~1.toml`, `C:\k\kubele~1x.con`, `C:\k\a~1.b.c`} {
		if err := CheckPath(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	bad := []string{
		``, `C:`, `C:\`, `c:\k`, `\k`, `C:/k`, `C:k`, `\\server\share`, `\\?\C:\k`, `C:\k\`, `C:\k\\x`, `C:\k\..\x`, `C:\k\.`, `C:\k\x.`, `C:\k\x `,
		`C:\k\a:b`, `C:\k\con`, `C:\k\NUL.txt`, `C:\k\Com1`, `C:\k\lpt9.log`, `C:\k\aux .txt`, `C:\k\CONIN$`, `C:\k\COM¹`, `C:\k\a*`, `C:\k\a?`, "C:\\k\\a\x00b",
		"C:\\\u212a\\x", "C:\\k\\\u0130", `C:\k\größe`, `C:\k\x.wmco-new`, `C:\k\x.WMCO-OLD-3`,
		`C:\k\CLOCK$`, `C:\k\clock$.txt`, `C:\k\conout$`, `C:\k\CONOUT$.log`, `C:\k\com².x`, `C:\k\LPT³`, `C:\k\com0`, `C:\k\aux\x`, "C:\\k\\a\x7fb", "C:\\k\\\x7f",
		`C:\k\KUBELE~1.CON`, `C:\k\kubele~1.con`, `C:\PROGRA~1\x`, `C:\k\CONTAI~2\x.toml`, `C:\k\KU4F2A~1.CON`, `C:\k\A~1`, `C:\k\~1.TXT`, `C:\k\KUBE~123.C`, `C:\k\K~123456.CON`,
		`C:\k\a|b`, `C:\k\a"b`, `C:\k\a<b`, "C:\\k\\\xff", `C:\` + strings.Repeat("a", 260),
	}
	for _, path := range bad {
		if err := CheckPath(path); !errors.Is(err, ErrPath) {
			t.Errorf("%q: error %v, want ErrPath", path, err)
		}
	}
}

// splitCommandLine follows the documented rules of CommandLineToArgvW, written from the documentation alone.
func splitCommandLine(line string) []string {
	var argv []string
	i := 0
	for first := true; i < len(line); first = false {
		var arg strings.Builder
		quoted := false
		for ; i < len(line) && (quoted || line[i] != ' ' && line[i] != '\t'); i++ {
			if first || line[i] != '\\' {
				switch {
				case line[i] != '"':
					arg.WriteByte(line[i])
				case !first && quoted && i+1 < len(line) && line[i+1] == '"':
					arg.WriteByte('"')
					i++
				default:
					quoted = !quoted
				}
				continue
			}
			n := 0
			for i < len(line) && line[i] == '\\' {
				n++
				i++
			}
			if i < len(line) && line[i] == '"' {
				arg.WriteString(strings.Repeat(`\`, n/2))
				if n%2 == 1 {
					arg.WriteByte('"')
				} else {
					i--
				}
			} else {
				arg.WriteString(strings.Repeat(`\`, n))
				i--
			}
		}
		for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
			i++
		}
		argv = append(argv, arg.String())
	}
	return argv
}

func TestCommandLinesSplitIntoTheirArguments(t *testing.T) {
	tests := map[string][]string{
		`C:\k\a.exe --v=2`:                       {`C:\k\a.exe`, "--v=2"},
		`"C:\k dir\a.exe" "" "a b"`:              {`C:\k dir\a.exe`, "", "a b"},
		`C:\k\a.exe "say \"hi\""`:                {`C:\k\a.exe`, `say "hi"`},
		`C:\k\a.exe C:\dir\ "C:\my dir\\"`:       {`C:\k\a.exe`, `C:\dir\`, `C:\my dir\`},
		`C:\k\a.exe "a\\\"b" "\\\\server\\ x\\"`: nil,
	}
	for line, argv := range tests {
		if argv == nil {
			continue
		}
		if got := CommandLine(argv); got != line {
			t.Errorf("CommandLine(%q) = %s, want %s", argv, got, line)
		}
		if diff := cmp.Diff(argv, splitCommandLine(line)); diff != "" {
			t.Errorf("splitting %s (-want +got):\n%s", line, diff)
		}
	}
}

func FuzzCommandLine(f *testing.F) {
	f.Add(`a b`, `c\"d\\`)
	f.Add(``, `\\`)
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.ContainsAny(a+b, "\x00") {
			t.Skip("no argument holds NUL")
		}
		argv := []string{`C:\k\x.exe`, a, b}
		if diff := cmp.Diff(argv, splitCommandLine(CommandLine(argv))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func FuzzDecodeManifest(f *testing.F) {
	b := example()
	b.Cluster.Normalize()
	m, err := b.Manifest()
	if err != nil {
		f.Fatal(err)
	}
	data, err := m.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"schema":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeManifest(data)
		if err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		second, err := DecodeManifest(again)
		if err != nil {
			t.Fatalf("what was decoded does not decode again: %v", err)
		}
		if diff := cmp.Diff(m, second); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func FuzzDecodeLayer(f *testing.F) {
	b := example()
	data, err := b.Cluster.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := DecodeLayer(data)
		if err != nil {
			return
		}
		again, err := l.Encode()
		if err != nil {
			t.Fatalf("a decoded layer does not encode: %v", err)
		}
		if _, err := DecodeLayer(again); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzDecodeFacts(f *testing.F) {
	f.Add(`{"schema":1,"hostName":"win-a","addresses":["10.0.0.5"],"osBuild":"10.0.20348"}`)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := DecodeFacts(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, facts := range all {
			facts.Build()
			facts.HasAddress("10.0.0.5")
		}
	})
}

func FuzzCheckPath(f *testing.F) {
	f.Add(`C:\k\x`)
	f.Add(`C:\k\..\x`)
	f.Fuzz(func(t *testing.T, path string) {
		if CheckPath(path) != nil {
			return
		}
		if strings.Contains(path, `\..`+`\`) || strings.Contains(path[2:], ":") || strings.Contains(path, "/") {
			t.Errorf("%q is accepted", path)
		}
	})
}

func TestFactsOfSeveralHostsAreDecodedStrictly(t *testing.T) {
	facts, err := DecodeFacts(strings.NewReader(`{"schema":1,"hostName":"a","addresses":["10.0.0.1"],"osBuild":"10.0.17763"}
{"schema":1,"hostName":"b","addresses":[],"osBuild":"10.0"}`))
	if err != nil {
		t.Fatal(err)
	}
	if facts[0].Build() != 17763 || facts[1].Build() != 0 || !facts[0].HasAddress("10.0.0.1") || facts[0].HasAddress("x") {
		t.Errorf("facts %+v", facts)
	}
	for name, text := range map[string]string{
		"unknown field": `{"schema":1,"host":"a"}`, "bad address": `{"schema":1,"addresses":["x"]}`, "no schema": `{}`,
		"IPv6 route": `{"schema":1,"defaultRoute":{"address":"fd00::1"}}`, "cut": `{"schema":1`,
	} {
		if _, err := DecodeFacts(strings.NewReader(text)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	var schema *SchemaError
	if _, err := DecodeFacts(strings.NewReader(`{"schema":7}`)); !errors.As(err, &schema) {
		t.Errorf("newer facts: %v", err)
	}
}

func TestFindingsAreSortedBySeverityWithoutRepeats(t *testing.T) {
	f := Findings{{Severity: SeverityInfo, Reason: "C"}, {Severity: SeverityError, Reason: "B"}, {Severity: SeverityWarning, Reason: "A"}, {Severity: SeverityError, Reason: "B"}}
	want := Findings{{Severity: SeverityError, Reason: "B"}, {Severity: SeverityWarning, Reason: "A"}, {Severity: SeverityInfo, Reason: "C"}}
	if diff := cmp.Diff(want, f.Sorted()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !f.Refused() || want[1:].Refused() {
		t.Error("refused is not told by errors")
	}
}
