//go:build unix

package folderhost

import (
	"bytes"
	"fmt"
	"testing"

	"wmco/bundle"
)

func BenchmarkWrite64MiB(b *testing.B) {
	h := create(b, b.TempDir())
	data := bytes.Repeat([]byte("0123456789abcdef"), 4<<20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		ok(b, h.Write(b.Context(), `C:\file`, bundle.AccessUsers, bytes.NewReader(data)))
	}
}

func BenchmarkWrite1KiB(b *testing.B) {
	h := create(b, b.TempDir())
	data := bytes.Repeat([]byte("0123456789abcdef"), 64)
	for b.Loop() {
		ok(b, h.Write(b.Context(), `C:\file`, bundle.AccessUsers, bytes.NewReader(data)))
	}
}

func BenchmarkStat5000(b *testing.B) {
	h := create(b, b.TempDir())
	paths := manyFiles(b, h)
	b.ResetTimer()
	for b.Loop() {
		infos, err := h.Stat(b.Context(), paths)
		ok(b, err)
		if len(infos) != 5000 {
			b.Fatal(len(infos))
		}
	}
}

// manyFiles returns 5,000 paths in 50 folders, every tenth of which is not there, and every tenth in another case.
func manyFiles(b *testing.B, h *Host) []string {
	b.Helper()
	var paths []string
	ok(b, h.MakeDirectory(b.Context(), `C:\k`, bundle.AccessUsers))
	for d := range 50 {
		dir := fmt.Sprintf(`C:\k\d%d`, d)
		ok(b, h.MakeDirectory(b.Context(), dir, bundle.AccessUsers))
		for n := range 100 {
			name := fmt.Sprintf(`%s\file%d`, dir, n)
			if n%10 != 0 {
				ok(b, h.tree.WriteFile(fmt.Sprintf("C/k/d%d/file%d", d, n), []byte("x"), 0o644))
			}
			if n%10 == 1 {
				name = fmt.Sprintf(`%s\FILE%d`, dir, n)
			}
			paths = append(paths, name)
		}
	}
	return paths
}
