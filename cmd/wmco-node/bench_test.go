//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wmco/applier/protocol"
	"wmco/bundle/archive"
	"wmco/internal/hostsim/bundletest"
	"wmco/payload"
)

// BenchmarkApplyProcess applies 420 MB of executables in a process of its own, and reports the memory of the process.
func BenchmarkApplyProcess(b *testing.B) {
	n := bundletest.New()
	random := rand.NewChaCha8([32]byte{1})
	for i, x := range payload.ProgramsFor(payload.TestedKubernetes)[:13] {
		data := make([]byte, 32<<20+i)
		_, _ = random.Read(data[:len(data)*3/10]) // as compressible as executables are
		n.Programs[x.Path] = string(data)
	}
	m, err := n.Bundle(b).Manifest()
	if err != nil {
		b.Fatal(err)
	}
	var all []protocol.Missing
	for _, d := range archive.Needs(m) {
		all = append(all, protocol.Missing{Digest: d})
	}
	stream := filepath.Join(b.TempDir(), "archive")
	if err := os.WriteFile(stream, n.Archive(b, all), 0o600); err != nil {
		b.Fatal(err)
	}
	exe := program(b)
	b.SetBytes(420 << 20)
	peak := int64(0)
	for b.Loop() {
		b.StopTimer()
		s := newSimulated(b, exe)
		in, err := os.Open(stream)
		if err != nil {
			b.Fatal(err)
		}
		cmd := s.command(b, nil, "apply")
		cmd.Stdin = in
		b.StartTimer()
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for running := true; running; {
			select {
			case err := <-ended:
				if err != nil {
					b.Fatal(err)
				}
				running = false
			case <-time.After(10 * time.Millisecond):
				peak = max(peak, peakOf(cmd.Process.Pid))
			}
		}
		b.StopTimer()
		_ = in.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(peak)/1024, "MiB-peak")
}

// peakOf is the most memory that a process had so far, in KiB. What wait4 returns includes that of the parent.
func peakOf(process int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), "VmHWM:")
	var n int64
	_, _ = fmt.Sscan(rest, &n)
	return n
}
