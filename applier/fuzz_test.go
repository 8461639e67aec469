package applier_test

import (
	"bytes"
	"strings"
	"testing"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// FuzzRecords puts anything in the place of the ledger and the journal: the machine still becomes the node, or the record
// is refused as that of a newer program; unmanaged entries stay.
func FuzzRecords(f *testing.F) {
	n := newNode()
	start := newMachine()
	if _, err := start.apply(f, n, applier.Options{}); err != nil {
		f.Fatal(err)
	}
	ledger, _ := start.Contents(ledgerPath)
	cut := start.copy()
	cut.CutAt(12)
	_, _ = cut.apply(f, n.Changed(changes[len(changes)-1].change), applier.Options{})
	journal, _ := cut.Contents(journalPath)
	f.Add(ledger, journal)
	f.Add(ledger, "")
	f.Add("", journal)
	f.Add("{", "}")
	f.Add(`{"schema":1,"bundle":{}}`, `{"schema":1,"before":{"files":[{"path":"C:\\Windows\\x","kind":"directory"}]}}`)
	f.Add(`{"schema":2}`, `{"schema":9}`)
	f.Fuzz(func(t *testing.T, ledger, journal string) {
		m := start.copy()
		m.Place(`C:\Windows\notepad.exe`, bundle.AccessUsers, "not ours")
		m.Place(`C:\k\notes.txt`, bundle.AccessUsers, "not ours")
		m.Place(ledgerPath, bundle.AccessAdmins, ledger)
		if journal != "" {
			m.Place(journalPath, bundle.AccessAdmins, journal)
		}
		if _, err := m.apply(t, n, applier.Options{}); err != nil {
			return
		}
		if o := m.observe(t, n); !o.InSync {
			t.Errorf("applied and differs: %+v", o)
		}
	})
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"schema":1,"inSync":true}`))
	f.Add([]byte(`{"schema":1,"event":"result","result":"applied"}`))
	f.Add([]byte(`{"schema":2}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = protocol.DecodeObservation(data)
		_, _ = protocol.DecodeEvent(data)
	})
}

// FuzzRoots names any path in a manifest: nothing outside the roots and our own folder is ever written, made or removed.
func FuzzRoots(f *testing.F) {
	for _, path := range []string{
		`C:\k\x`, `C:\Windows\System32\drivers\etc\hosts`, `C:\k\..\Windows\x`, `C:\kk\x`, `D:\k\x`, `C:\K\X`, `\\server\share\x`, `C:\k`,
		`C:\var\log\x`, `C:\var`, `C:\ProgramData\wmco\ledger.json`, `C:\k\a:b`, `C:/k/x`, `C:\k\con`,
	} {
		f.Add(path, path)
	}
	f.Fuzz(func(t *testing.T, file, folder string) {
		b := bundle.Bundle{
			Cluster: bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerCluster, Stage: bundle.StageJoin},
			Node:    bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerNode, Stage: bundle.StageJoin},
		}
		text := []byte("x")
		b.Cluster.Files = []bundle.File{{Path: file, Digest: bundle.Of(text), Size: 1, Access: bundle.AccessUsers, Impact: bundle.ImpactNone, Content: bundle.Content{Data: text}}}
		b.Cluster.Directories = []bundle.Directory{{Path: folder, Access: bundle.AccessUsers, Exclusive: true}}
		b.Cluster.State = []bundle.State{{Path: folder, Cluster: "blue"}}
		m, err := b.Manifest()
		if err != nil {
			return // no archive has it
		}
		source, err := archive.FromBundle(b)
		if err != nil {
			t.Fatal(err)
		}
		var stream bytes.Buffer
		if err := archive.Send(t.Context(), &stream, archive.Request{Manifest: m, Source: source, Missing: map[bundle.Digest][]int{bundle.Of(text): nil}}); err != nil {
			t.Fatal(err)
		}
		r, err := archive.NewReader(&stream)
		if err != nil {
			t.Fatal(err)
		}
		machine := newMachine()
		machine.Place(`C:\Windows\System32\drivers\etc\hosts`, bundle.AccessUsers, "not ours")
		before := machine.Snapshot()
		_, _ = machine.engine().Apply(t.Context(), r.Manifest, r, applier.Options{})
		after := machine.Snapshot()
		for path := range before.Files {
			if _, stays := after.Files[path]; !stays {
				t.Errorf("%s is gone", path)
			}
		}
		for path, x := range after.Files {
			_, was := before.Files[path]
			key := bundle.FoldPath(path)
			ours := strings.HasPrefix(key, `c:\k\`) || key == `c:\k` || strings.HasPrefix(key, `c:\var`) || strings.HasPrefix(key, `c:\programdata`)
			if !was && !ours {
				t.Errorf("%s was made: %+v", path, x)
			}
		}
	})
}
