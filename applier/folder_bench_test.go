package applier_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"wmco/applier"
	"wmco/bundle/archive"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/hostsim/folderhost"
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
	host, err := folderhost.Create(root, folderhost.Options{Facts: hostsim.Facts()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = host.Close() })
	return &applier.Engine{Host: host, Clock: systemClock{}, Permits: bundletest.Permit, Program: "bench", Owner: "bench", Settle: time.Millisecond}, root
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) SinceBoot() time.Duration { return time.Since(started) }

var started = time.Now()

func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// BenchmarkFullNode applies a full node to an empty machine, and observes it: with the cache of its files, reading all
// of them, and, in the same run, with rsync, which reads both sides.
func BenchmarkFullNode(b *testing.B) {
	everything, manifest := writeFullNode(b)
	b.Run("apply", func(b *testing.B) {
		b.SetBytes(420 << 20)
		b.ReportAllocs()
		peak := uint64(0)
		for b.Loop() {
			b.StopTimer()
			e, _ := folderMachine(b)
			debug.FreeOSMemory()
			stop := watchHeap()
			b.StartTimer()
			applyArchive(b, e, everything)
			b.StopTimer()
			peak = max(peak, stop())
			b.StartTimer()
		}
		b.ReportMetric(float64(peak)/1e6, "MB-peak-heap")
	})
	e, root := folderMachine(b)
	applyArchive(b, e, everything)
	time.Sleep(4 * time.Second) // until the cache believes the files
	for _, full := range []bool{false, true} {
		b.Run(fmt.Sprintf("observe/full=%t", full), func(b *testing.B) {
			for b.Loop() {
				r, err := archive.NewReader(bytes.NewReader(manifest))
				if err != nil {
					b.Fatal(err)
				}
				if o, err := e.Observe(b.Context(), r.Manifest, r.Contents(), full); err != nil || !o.InSync {
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

// writeFullNode returns the file of an archive with all contents, and an archive of the manifest alone. The contents are
// not kept in memory, where they would count as the engine's.
func writeFullNode(b *testing.B) (everything string, manifest []byte) {
	b.Helper()
	n := fullNode()
	everything = filepath.Join(b.TempDir(), "archive")
	if err := os.WriteFile(everything, n.Archive(b, n.Needs(b)), 0o600); err != nil {
		b.Fatal(err)
	}
	manifest = n.Archive(b, nil)
	bundletest.Forget()
	return everything, manifest
}

// watchHeap looks at the heap until stop, which returns the most bytes of it that objects took, dead ones included.
func watchHeap() (stop func() uint64) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	end, peak := make(chan struct{}), make(chan uint64)
	go func() {
		most := uint64(0)
		for tick := time.Tick(time.Millisecond); ; {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64())
			select {
			case <-end:
				peak <- most
				return
			case <-tick:
			}
		}
	}()
	return func() uint64 { close(end); return <-peak }
}

func applyArchive(b *testing.B, e *applier.Engine, path string) {
	b.Helper()
	file, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	r, err := archive.NewReader(file)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := e.Apply(b.Context(), r.Manifest, r, applier.Options{}); err != nil {
		b.Fatal(err)
	}
}
