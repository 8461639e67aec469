package applier_test

import (
	"testing"

	"wmco/applier"
	"wmco/render/bundle"
)

// FuzzRecords puts anything in the place of the ledger and the journal: the machine still becomes the node, or the record
// is refused as that of a newer program; what is not ours stays.
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
		_, _ = applier.DecodeObservation(data)
		_, _ = applier.DecodeEvent(data)
	})
}
