package applier_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"wmco/applier"
	"wmco/applier/folderhost"
	"wmco/applier/hosttest"
	"wmco/render/bundle/archive"
)

// fullNode is a node as large as real ones: 13 executables of 420 MB together, and 60 files.
func fullNode() node {
	n := newNode()
	random := rand.NewChaCha8([32]byte{1})
	for i := range 13 {
		data := make([]byte, 32<<20+i)
		// As compressible as executables are: zstd takes a third of them.
		_, _ = random.Read(data[:len(data)*3/10])
		n.Programs[fmt.Sprintf(`C:\k\program%d.exe`, i)] = string(data)
	}
	for i := range 60 {
		n.Files[fmt.Sprintf(`C:\k\containerd\registries\r%d.io\hosts.toml`, i)] = fmt.Sprintf("server = %d\n", i)
	}
	return n
}

// folderMachine is a machine under a folder, with an engine.
func folderMachine(b *testing.B) (*applier.Engine, string) {
	b.Helper()
	root := b.TempDir()
	host, err := folderhost.Create(root, folderhost.Options{Facts: hosttest.Facts()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = host.Close() })
	return &applier.Engine{Host: host, Clock: systemClock{}, Program: "bench", Owner: "bench"}, root
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// BenchmarkFullNode applies a full node to an empty machine, and observes it: with what is known of its files, reading all
// of them, and, in the same run, with rsync, which reads both sides.
func BenchmarkFullNode(b *testing.B) {
	n := fullNode()
	everything := n.Archive(b, n.Needs(b))
	b.Run("apply", func(b *testing.B) {
		b.SetBytes(420 << 20)
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			e, _ := folderMachine(b)
			b.StartTimer()
			applyArchive(b, e, everything)
			b.ReportMetric(float64(heap())/1e6, "MB-heap")
		}
	})
	e, root := folderMachine(b)
	applyArchive(b, e, everything)
	time.Sleep(4 * time.Second) // until the cache believes the files
	manifest := n.Archive(b, nil)
	for _, full := range []bool{false, true} {
		b.Run(fmt.Sprintf("observe/full=%t", full), func(b *testing.B) {
			for b.Loop() {
				r, err := archive.NewReader(bytes.NewReader(manifest))
				if err != nil {
					b.Fatal(err)
				}
				if o, err := e.Observe(b.Context(), r, full); err != nil || !o.InSync {
					b.Fatalf("%v, %+v", err, o)
				}
			}
		})
	}
	b.Run("rsync -c", func(b *testing.B) {
		rsync, err := exec.LookPath("rsync")
		if err != nil {
			b.Skip("rsync is not installed")
		}
		other := b.TempDir()
		if out, err := exec.Command(rsync, "-a", filepath.Join(root, "C")+"/", other).CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		for b.Loop() {
			if out, err := exec.Command(rsync, "-ac", filepath.Join(root, "C", "k")+"/", filepath.Join(other, "k")).CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
		}
	})
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

func applyArchive(b *testing.B, e *applier.Engine, stream []byte) {
	b.Helper()
	r, err := archive.NewReader(io.Reader(bytes.NewReader(stream)))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := e.Apply(b.Context(), r, applier.Options{}); err != nil {
		b.Fatal(err)
	}
}
