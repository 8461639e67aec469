package mirrors

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/BurntSushi/toml"

	"wmco/bundle"
)

// manyInputs are n entries over 300 registries, in objects of 100, as a large disconnected cluster has them.
// The folder of a mirror follows from the entry; the fewer folders, the more entries share an endpoint.
func manyInputs(n int, folder func(entry int) string) Inputs {
	in := Inputs{PullSecret: bundle.NewSecret(`{"auths": {"mirror.corp.example.com:5000": {"username": "puller", "password": "secret"}, "quay.io/org": {"auth": "dTpw"}}}`)}
	for i := range n {
		kind := []SetKind{DigestSet, TagSet}[i/100%2]
		path := fmt.Sprintf("team-%d/app-%d", i/300%10, i)
		in.Sets = append(in.Sets, Set{
			Kind: kind, Ref: bundle.Ref{Kind: string(kind), Name: fmt.Sprintf("mirrors-%d", i/100)}, Field: fmt.Sprintf("spec.entries[%d]", i%100),
			Source:  fmt.Sprintf("registry-%d.example.com/%s", i%300, path),
			Mirrors: []string{"mirror.corp.example.com:5000/" + folder(i) + "/" + path, "backup.corp.example.com/" + path},
		})
	}
	return in
}

// perRegistry is how mirroring tools lay mirrors out.
func perRegistry(entry int) string { return fmt.Sprintf("registry-%d", entry%300) }

// perEntry gives the largest files: no endpoint is shared, and the names do not compress.
func perEntry(entry int) string {
	sum := sha256.Sum256([]byte{byte(entry), byte(entry >> 8)})
	return hex.EncodeToString(sum[:6])
}

// BenchmarkBuild3000 makes the files of 3,000 entries, which should take at most 100 ms. It also reports their size as TOML,
// plain and compressed.
func BenchmarkBuild3000(b *testing.B) {
	for _, c := range []struct {
		name   string
		folder func(int) string
	}{{"folder per registry", perRegistry}, {"folder per entry", perEntry}} {
		b.Run(c.name, func(b *testing.B) {
			in := manyInputs(3_000, c.folder)
			var r Result
			for b.Loop() {
				r = Build(in, Options{PartialNever: Closed})
			}
			if r.Findings.Refused() || len(r.Files) != 300 {
				b.Fatalf("%d files, findings %+v", len(r.Files), r.Findings)
			}
			text := approximateTOML(b, r.Files)
			b.ReportMetric(float64(len(text)), "toml-bytes")
			b.ReportMetric(float64(packedSize(b, text)), "gzip-bytes")
		})
	}
}

func packedSize(b *testing.B, text []byte) int {
	b.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(text); err != nil {
		b.Fatal(err)
	}
	if err := z.Close(); err != nil {
		b.Fatal(err)
	}
	return packed.Len()
}

// BenchmarkMerge3000 merges the same entries as OpenShift does.
func BenchmarkMerge3000(b *testing.B) {
	in := manyInputs(3_000, perRegistry)
	for b.Loop() {
		Merge(in.Sets)
	}
}

// approximateTOML is similar enough to the rendered files to compare sizes; this package cannot import the template.
func approximateTOML(b *testing.B, files []HostsFile) []byte {
	b.Helper()
	type hostTable struct {
		Capabilities []Capability      `toml:"capabilities"`
		OverridePath bool              `toml:"override_path"`
		Header       map[string]string `toml:"header,omitempty"`
	}
	var out bytes.Buffer
	for _, f := range files {
		hosts := map[string]hostTable{}
		for _, e := range f.Hosts {
			h := hostTable{Capabilities: e.Capabilities, OverridePath: true}
			if !e.Authorization.IsZero() {
				h.Header = map[string]string{"Authorization": e.Authorization.Reveal()}
			}
			hosts[e.URL] = h
		}
		fmt.Fprintf(&out, "# %s\n", f.Directory)
		if err := toml.NewEncoder(&out).Encode(map[string]any{"host": hosts}); err != nil {
			b.Fatal(err)
		}
	}
	return out.Bytes()
}
