package published

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/archive"
)

var key = bundle.Key("key")

func file(path, text string) bundle.File {
	return bundle.File{
		Path: path, Digest: bundle.Of([]byte(text)), Size: int64(len(text)), Access: bundle.AccessUsers, Impact: bundle.ImpactNone,
		Content: bundle.Content{Data: []byte(text)},
	}
}

func secretFile(path, text string) bundle.File {
	f := file(path, text)
	f.Digest, f.Secret, f.Access, f.Content.Preview = key.Of([]byte(text)), true, bundle.AccessAdmins, []byte("<masked>")
	return f
}

func layer(kind bundle.LayerKind, files ...bundle.File) bundle.Layer {
	return bundle.Layer{Schema: bundle.Schema, Kind: kind, Stage: bundle.StageJoined, Files: files}
}

func pack(t testing.TB, l bundle.Layer) Packed {
	t.Helper()
	p, err := Pack(l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// noise is text that does not get smaller.
func noise(size int) string {
	out := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(out)
	return string(out)
}

func parts(p Packed) [][]byte {
	var list [][]byte
	for _, s := range p.Secrets {
		list = append(list, s.Data)
	}
	return list
}

func TestLayersArePublishedWhereTheyFit(t *testing.T) {
	for _, tt := range []struct {
		name   string
		layer  bundle.Layer
		inline bool
		parts  int
	}{
		{"a small node layer", layer(bundle.LayerNode, file(`C:\k\cni.conf`, "{}")), true, 0},
		{"a large node layer", layer(bundle.LayerNode, file(`C:\k\cni.conf`, noise(8<<10))), false, 1},
		{"a small cluster layer, which may hold secrets", layer(bundle.LayerCluster, secretFile(`C:\k\token`, "hunter2")), false, 1},
		{"a cluster layer of three parts", layer(bundle.LayerCluster, file(`C:\k\cas.crt`, noise(2*PartSize+1))), false, 3},
	} {
		p := pack(t, tt.layer)
		if (len(p.Inline) > 0) != tt.inline || p.Parts != tt.parts || len(p.Secrets) != tt.parts {
			t.Errorf("%s: %d bytes inline, %d parts", tt.name, len(p.Inline), p.Parts)
		}
		seen := map[string]bool{}
		for _, s := range p.Secrets {
			if len(s.Data) > PartSize || seen[s.Name] || len(s.Name) > 253 {
				t.Errorf("%s: Secret %s has %d bytes", tt.name, s.Name, len(s.Data))
			}
			seen[s.Name] = true
		}
		opened, err := p.Open(parts(p))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got, want := string(opened.Files[0].Content.Data), string(tt.layer.Files[0].Content.Data); got != want {
			t.Errorf("%s: other content", tt.name)
		}
		if diff := cmp.Diff(p, pack(t, tt.layer)); diff != "" {
			t.Errorf("%s: the same layer is published in another form:\n%s", tt.name, diff)
		}
	}
}

func TestDamagedPartsAreRefused(t *testing.T) {
	p := pack(t, layer(bundle.LayerCluster, file(`C:\k\cas.crt`, noise(2*PartSize+1))))
	whole := parts(p)
	other := pack(t, layer(bundle.LayerCluster, file(`C:\k\cas.crt`, "another"))).Secrets[0].Data
	for name, given := range map[string][][]byte{
		"none":              nil,
		"one is missing":    whole[:2],
		"one is cut":        {whole[0], whole[1][:100], whole[2]},
		"two are exchanged": {whole[1], whole[0], whole[2]},
		"one is another's":  {other, whole[1], whole[2]},
		"one is empty":      {whole[0], nil, whole[2]},
	} {
		if _, err := p.Open(given); !errors.Is(err, archive.ErrMalformed) && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func desired(t testing.TB) Desired {
	t.Helper()
	c, n := pack(t, layer(bundle.LayerCluster, secretFile(`C:\k\token`, "hunter2"))), pack(t, layer(bundle.LayerNode, file(`C:\k\cni.conf`, "{}")))
	whole, err := bundle.DigestLayers(c.Digest, n.Digest)
	if err != nil {
		t.Fatal(err)
	}
	return Desired{Schema: Schema, Bundle: whole, MaxImpact: bundle.ImpactRestart, Namespace: "operator", Cluster: c.Layer, Node: n.Layer}
}

func TestDesiredSurvivesItsAnnotation(t *testing.T) {
	want := desired(t)
	text, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeDesired(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if strings.Contains(text, "hunter2") {
		t.Error("the annotation holds a secret")
	}
	if _, err := DecodeDesired(strings.Replace(text, `"schema":1`, `"schema":1,"later":true`, 1)); err != nil {
		t.Errorf("a field of a newer program: %v", err)
	}
}

func TestForeignAnnotationsAreRefused(t *testing.T) {
	good, err := desired(t).Encode()
	if err != nil {
		t.Fatal(err)
	}
	change := func(from, to string) string {
		if !strings.Contains(good, from) {
			t.Fatalf("%s is not in %s", from, good)
		}
		return strings.Replace(good, from, to, 1)
	}
	for name, text := range map[string]string{
		"empty": "", "no JSON": "bundle", "a list": "[]", "no schema": "{}", "another type": change(`"bundle":"`, `"bundle":["`),
		"an unknown impact": change(`"maxImpact":"restart"`, `"maxImpact":"all"`), "no impact": change(`"maxImpact":"restart",`, ""),
		"another bundle": change(`"bundle":"sha256:`, `"bundle":"sha256:0`), "a layer that is nowhere": change(`,"parts":1`, ""),
		"a layer with too many parts": change(`"parts":1`, `"parts":100`), "a negative number of parts": change(`"parts":1`, `"parts":-1`),
		"a path as a digest": change(`"cluster":{"digest":"sha256:`, `"cluster":{"digest":"../`), "too long": good + strings.Repeat(" ", maxAnnotation),
	} {
		if _, err := DecodeDesired(text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	newer := (*bundle.SchemaError)(nil)
	if _, err := DecodeDesired(change(`"schema":1`, `"schema":2`)); !errors.As(err, &newer) {
		t.Errorf("a newer schema: %v", err)
	}
}

func TestReportsStayWithinTheirLimits(t *testing.T) {
	want := Report{Schema: Schema, Program: "v1", State: StateRolledBack, Message: "x", Missing: []string{"a"}, Facts: &bundle.Facts{Schema: 1, HostName: "win-a"}}
	text, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeReport(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	long := want
	long.Message, long.Missing = strings.Repeat("ü", MaxMessage), slicesOf("x", 1000)
	if text, err = long.Encode(); err != nil {
		t.Fatal(err)
	}
	if got, err = DecodeReport(text); err != nil || len(got.Message) > MaxMessage || len(got.Missing) != maxEntries || !strings.HasSuffix(got.Message, "ü...") {
		t.Errorf("%d bytes of message, %d entries: %v", len(got.Message), len(got.Missing), err)
	}
	huge := want
	huge.Facts = &bundle.Facts{Schema: 1, HostName: strings.Repeat("x", maxAnnotation)}
	if _, err := huge.Encode(); !errors.Is(err, ErrInvalid) {
		t.Errorf("a huge report: %v", err)
	}
	for name, text := range map[string]string{"an unknown state": `{"schema":1,"state":"Happy"}`, "no state": `{"schema":1}`, "a digest that is none": `{"schema":1,"state":"Applied","applied":"x"}`} {
		if _, err := DecodeReport(text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWhatANodeWritesItselfIsLimited: its agent keeps to the limits, and whoever has its certificate need not.
func TestWhatANodeWritesItselfIsLimited(t *testing.T) {
	long := strings.Repeat("x", 2*MaxMessage)
	got, err := DecodeReport(`{"schema":1,"state":"Applied","message":"` + long + `","sshStopped":"` + long + `"}`)
	if err != nil || len(got.Message) != MaxMessage || len(got.SSHStopped) != MaxMessage {
		t.Errorf("%v: a message of %d bytes, why sshd is stopped of %d", err, len(got.Message), len(got.SSHStopped))
	}
}

// TestWhatANodeReportsOfALogIsLimited, whoever wrote the annotation.
func TestWhatANodeReportsOfALogIsLimited(t *testing.T) {
	lines, err := json.Marshal(append(slicesOf("x", 1000), "\x1b[2Jend", strings.Repeat("y", 2000)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeReport(`{"schema":1,"state":"RolledBack","log":{"service":"kubelet","lines":` + string(lines) + `}}`)
	if err != nil || len(got.Log.Lines) != 10 || got.Log.Lines[8] != "end" || len(got.Log.Lines[9]) > 1<<10 {
		t.Errorf("%+v, %v", got.Log, err)
	}
	if text := AppendLog(strings.Repeat("m", 990), got.Log); len(text) > MaxMessage {
		t.Errorf("a message of %d bytes", len(text))
	}
}

func slicesOf(text string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = text
	}
	return list
}

func FuzzDecode(f *testing.F) {
	good, err := desired(f).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(`{"schema":1,"state":"Applied"}`)
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := DecodeDesired(text); err == nil {
			again, err := d.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if same, err := DecodeDesired(again); err != nil || !cmp.Equal(same, d) {
				t.Errorf("%+v becomes %+v: %v", d, same, err)
			}
			_, _ = d.Node.Open(nil)
		}
		if r, err := DecodeReport(text); err == nil && max(len(r.Message), len(r.SSHStopped)) > MaxMessage {
			t.Error("a message without a limit")
		}
	})
}
