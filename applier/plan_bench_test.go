package applier

import (
	"fmt"
	"testing"

	"wmco/bundle"
)

// BenchmarkPlan plans 5,000 files of which every tenth differs, 50 services among them.
func BenchmarkPlan(b *testing.B) {
	var l bundle.Layer
	contents, seen := known{}, observed{
		files: map[string]fileSeen{}, settings: map[bundle.EntryID]Setting{}, services: map[string]ServiceState{}, folders: map[string][]FileInfo{},
	}
	for i := range 5000 {
		path := fmt.Sprintf(`C:\k\folder%d\file%d`, i/50, i)
		d := bundle.Of([]byte(path))
		l.Files = append(l.Files, bundle.File{Path: path, Digest: d, Size: 10, Access: bundle.AccessUsers, Impact: bundle.ImpactRestart})
		sum := contents.content(d, 10).SHA256
		if i%10 == 0 {
			sum = "another"
		}
		info := FileInfo{Path: path, Kind: FileRegular, Size: 10, Access: bundle.AccessUsers}
		seen.files[bundle.FoldPath(path)] = fileSeen{FileInfo: info, sha256: sum}
		dir := bundle.FoldPath(bundle.Dir(path))
		seen.folders[dir] = append(seen.folders[dir], info)
	}
	for i := range 50 {
		l.Services = append(l.Services, bundle.Service{Name: fmt.Sprintf("s%d", i), Argv: []string{`C:\k\x.exe`}, Start: bundle.StartAuto, Reads: []string{l.Files[i].Path}})
	}
	t := aim(bundle.Bundle{Cluster: l}, contents)
	b.ReportAllocs()
	for b.Loop() {
		if p := makePlan(&t, seen, circumstances{owned: map[string]bool{}}); len(p.steps) < 500 {
			b.Fatal(len(p.steps))
		}
	}
}
