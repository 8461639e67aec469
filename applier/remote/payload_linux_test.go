package remote

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wmco/applier"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/internal/sshtest"
	"wmco/internal/sshtest/simulated"
	"wmco/payload/store"
)

// shipped is a request with the whole payload, where it was built.
func shipped(b *testing.B) (Request, *store.Store) {
	b.Helper()
	s, err := store.Open(filepath.Join("..", "..", "bin", "payload"))
	if err != nil {
		b.Skip("needs the payload: make payload")
	}
	l := bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerCluster, Stage: bundle.StageJoin}
	folders := map[string]bool{}
	for _, e := range s.Entries() {
		folders[bundle.Dir(e.Path)] = true
		l.Payload = append(l.Payload, bundle.Payload{Path: e.Path, Component: e.Name, Version: e.Version, Digest: e.Raw.Digest, Size: e.Raw.Size, Impact: bundle.ImpactNone})
	}
	for folder := range folders {
		l.Directories = append(l.Directories, bundle.Directory{Path: folder, Access: bundle.AccessUsers})
	}
	r := request(b, l)
	r.Source = executables{s}
	return r, s
}

// executables are a payload's.
type executables struct{ *store.Store }

func (e executables) Contents() []archive.Content {
	var all []archive.Content
	for _, x := range e.Entries() {
		all = append(all, archive.Content{Digest: x.Raw.Digest, SHA256: strings.TrimPrefix(string(x.Raw.Digest), "sha256:"), Size: x.Raw.Size, Stored: x.Stored.Size})
	}
	return all
}

func (e executables) Open(sha256 string) (io.ReadCloser, error) {
	for _, x := range e.Entries() {
		if string(x.Raw.Digest) == "sha256:"+sha256 {
			return e.Stored(x.Name)
		}
	}
	return nil, os.ErrNotExist
}

// BenchmarkPayload puts the whole payload onto a machine that has nothing, beside `ssh 'cat > file; sync'` of the same bytes
// as they lie there: on this machine's own network, and at 100 Mbit/s.
func BenchmarkPayload(b *testing.B) {
	want, from := shipped(b)
	raw := unpack(b, from)
	for _, network := range []struct {
		name string
		rate int64
	}{{"loopback", 0}, {"100 Mbit/s", 100e6 / 8}} {
		b.Run("cat, "+network.name, func(b *testing.B) {
			for b.Loop() {
				catRaw(b, raw, network.rate)
			}
		})
		b.Run("apply, "+network.name, func(b *testing.B) {
			for b.Loop() {
				applyPayload(b, want, network.rate)
			}
		})
	}
}

// unpack writes all executables one after another into a file.
func unpack(b *testing.B, from *store.Store) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "raw")
	out, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	for _, e := range from.Entries() {
		raw, err := from.Raw(e.Name)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(out, raw); err != nil {
			b.Fatal(err)
		}
		_ = raw.Close()
	}
	return path
}

func applyPayload(b *testing.B, want Request, rate int64) {
	b.Helper()
	b.StopTimer()
	s, p := realMachine(b, sshtest.Options{})
	line := sshtest.NewLine(b, s.Address, sshtest.LineOptions{Rate: rate})
	d := dialer(b, s)
	d.Limits.Silence = time.Hour
	c := NewClient(d, p)
	defer c.Close()
	b.StartTimer()
	r, err := c.Machine(at(s, line.Address)).Apply(b.Context(), want, ApplyOptions{}, quiet)
	if err != nil || r.Result != applier.ResultApplied {
		b.Fatalf("%q, %v", r.Result, err)
	}
	stats := line.Stats()
	b.ReportMetric(float64(stats.Up)/1e6, "MB-up")
}

func catRaw(b *testing.B, raw string, rate int64) {
	b.Helper()
	b.StopTimer()
	s := programs.Start(b, sshtest.Options{Settings: simulated.Settings{Shell: simulated.ShellPlain}})
	line := sshtest.NewLine(b, s.Address, sshtest.LineOptions{Rate: rate})
	host, port, _ := strings.Cut(line.Address, ":")
	args := append(strings.Fields(sshOptions(s, b.TempDir())), "-p", port, s.User+"@"+host, "cat > "+s.Root+"/all; sync")
	cmd := exec.CommandContext(b.Context(), "ssh", args...)
	stdin, err := os.Open(raw)
	if err != nil {
		b.Fatal(err)
	}
	defer stdin.Close()
	cmd.Stdin = stdin
	b.StartTimer()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	b.ReportMetric(float64(line.Stats().Up)/1e6, "MB-up")
}
