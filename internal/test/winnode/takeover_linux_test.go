package winnode

import (
	"encoding/pem"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/hostsim/bundletest"
)

// importedPath is the existing operator's list of the CAs that it imported.
const importedPath = `C:\k\imported-certs.pem`

// TestCAsThatTheExistingOperatorImportedAreRemoved takes over a host that has CAs in LocalMachine\Root, the list of some of them,
// and no records of ours.
func TestCAsThatTheExistingOperatorImportedAreRemoved(t *testing.T) {
	t.Parallel()
	m, n := newMachine(t), newNode(t)
	wanted, stale, company := n.CAs[0], n.CAs[1], authority(t, "company")
	with := func(cas ...string) bundletest.Node { return n.Changed(func(n *bundletest.Node) { n.CAs = cas }) }
	all := with(wanted, stale, company)
	m.applied(t, all)
	if err := os.RemoveAll(m.Path(`C:\ProgramData\wmco`)); err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	for _, der := range []string{wanted, stale} {
		list.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(der)}))
	}
	m.WriteFile(t, importedPath, []byte(list.String()))
	for _, step := range []struct {
		name   string
		apply  bundletest.Node
		result protocol.Result
		gone   []bundle.EntryID
	}{
		{"a bundle that wants one of them", with(wanted), protocol.ResultApplied, []bundle.EntryID{entryOf(stale)}},
		{"the same bundle", with(wanted), protocol.ResultSame, []bundle.EntryID{entryOf(stale)}},
		{"a bundle that wants none", with(), protocol.ResultApplied, []bundle.EntryID{entryOf(wanted), entryOf(stale)}},
	} {
		if e := m.applied(t, step.apply); e.Result != step.result {
			t.Errorf("%s: %+v", step.name, e)
		}
		var gone []bundle.EntryID
		for _, a := range m.observe(t, all).Actions {
			if a.Verb == protocol.VerbSet && strings.HasPrefix(string(a.Entry), string(bundle.KindTrustedCA)) {
				gone = append(gone, a.Entry)
			}
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(step.gone)), gone); diff != "" {
			t.Errorf("%s: CAs that are not trusted (-want +got):\n%s", step.name, diff)
		}
		if _, err := os.Stat(m.Path(importedPath)); !os.IsNotExist(err) {
			t.Errorf("%s: the list stays: %v", step.name, err)
		}
	}
}

func entryOf(der string) bundle.EntryID {
	return bundle.KindTrustedCA.ID(string(bundle.Of([]byte(der))))
}
