package plan

import (
	"fmt"
	"testing"

	"wmco/bundle"
)

// BenchmarkPlan plans 5,000 files of which every tenth differs, 50 services among them.
func BenchmarkPlan(b *testing.B) {
	var l bundle.Layer
	contents, observed := Contents{}, Observed{
		Files: map[string]ObservedFile{}, Settings: map[bundle.EntryID]Setting{}, Services: map[string]ServiceState{}, Folders: map[string][]FileInfo{},
	}
	for i := range 5000 {
		path := fmt.Sprintf(`C:\k\folder%d\file%d`, i/50, i)
		d := bundle.Of([]byte(path))
		l.Files = append(l.Files, bundle.File{Path: path, Digest: d, Size: 10, Access: bundle.AccessUsers, Impact: bundle.ImpactRestart})
		sum := contents.ContentOf(d, 10).SHA256
		if i%10 == 0 {
			sum = "another"
		}
		info := FileInfo{Path: path, Kind: FileRegular, Size: 10, Access: bundle.AccessUsers}
		observed.Files[bundle.FoldPath(path)] = ObservedFile{FileInfo: info, SHA256: sum}
		dir := bundle.FoldPath(bundle.Dir(path))
		observed.Folders[dir] = append(observed.Folders[dir], info)
	}
	for i := range 50 {
		l.Services = append(l.Services, bundle.Service{Name: fmt.Sprintf("s%d", i), Argv: []string{`C:\k\x.exe`}, Start: bundle.StartAuto, Reads: []string{l.Files[i].Path}})
	}
	t := NewTarget(bundle.Bundle{Cluster: l}, contents)
	b.ReportAllocs()
	for b.Loop() {
		if p := Make(&t, observed, Circumstances{Owned: map[string]bool{}}); len(p.Steps) < 500 {
			b.Fatal(len(p.Steps))
		}
	}
}
