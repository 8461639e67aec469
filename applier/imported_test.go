package applier_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/hostsim/folderhost"
	"wmco/internal/hostsim/simulation"
)

// importedPath is the existing operator's list of the CAs that it imported.
const importedPath = `C:\k\imported-certs.pem`

// authority returns the certificate of a new CA, as DER.
func authority(t testing.TB, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: hostsim.Epoch(), NotAfter: hostsim.Epoch().AddDate(10, 0, 0), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(der)
}

func asPEM(cas ...string) string {
	var out strings.Builder
	for _, der := range cas {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(der)}))
	}
	return out.String()
}

func trustedCA(der string) plan.Setting {
	return plan.Setting{Kind: bundle.KindTrustedCA, Name: string(bundle.Of([]byte(der))), Value: der, Present: true}
}

// trust trusts CAs without the applier.
func (m *machine) trust(cas ...string) {
	m.edit(func(s *simulation.State) {
		for _, der := range cas {
			s.Put(trustedCA(der))
		}
	})
}

func (m *machine) trusts(der string) bool {
	_, ok := m.Snapshot().Settings[simulation.SettingKey(bundle.KindTrustedCA, trustedCA(der).Name)]
	return ok
}

// takenOver is a host of the existing operator, which imported three CAs: one that the bundle wants, one that it does not want,
// and one that was removed since. The CA of the company was trusted by another program.
func takenOver(t testing.TB) (m *machine, n node, wanted, stale, company string) {
	t.Helper()
	wanted, stale, company = authority(t, "wanted"), authority(t, "stale"), authority(t, "company")
	m = newMachine()
	m.trust(wanted, stale, company)
	text := "# Example Root CA\n" + asPEM(stale, wanted, authority(t, "gone"), stale)
	m.Place(importedPath, plan.AccessOther, strings.ReplaceAll(text, "\n", "\r\n"))
	return m, newNode().Changed(func(n *node) { n.CAs = []string{wanted} }), wanted, stale, company
}

func TestCAsThatTheExistingOperatorImportedAreInThePlan(t *testing.T) {
	t.Parallel()
	m, n, wanted, stale, _ := takenOver(t)
	before := m.place()
	o := m.observe(t, n)
	list := bundle.KindFile.ID(importedPath)
	var got []protocol.Action
	for _, a := range o.Actions {
		if a.Entry == list || strings.HasPrefix(string(a.Entry), string(bundle.KindTrustedCA)) {
			got = append(got, a)
		}
	}
	want := []protocol.Action{
		{Verb: protocol.VerbUnset, Entry: trustedCA(stale).ID(), Reason: protocol.ReasonUnwanted, Impact: bundle.ImpactNone},
		{Verb: protocol.VerbRemove, Entry: list, Reason: protocol.ReasonUnwanted, Impact: bundle.ImpactNone},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Contains(o.Adopt, trustedCA(wanted).ID()) || slices.Contains(o.Foreign, importedPath) || len(o.Notes) > 0 {
		t.Errorf("adopted %q, foreign %q, notes %q", o.Adopt, o.Foreign, o.Notes)
	}
	if _, err := m.apply(t, n, applier.Options{DryRun: true}); err != nil {
		t.Error(err)
	}
	if diff := differs(before, m.place()); diff != "" {
		t.Errorf("a dry run changed the host:\n%s", diff)
	}
}

// The run is cut before every step, and resumed. Afterwards the CA that was imported and wanted is managed, as one of ours is.
func TestCAsThatTheExistingOperatorImportedAreRemoved(t *testing.T) {
	t.Parallel()
	start, n, _, _, company := takenOver(t)
	applied := newMachine()
	applied.trust(company)
	without := n.Changed(func(n *node) { n.CAs = nil })
	dropped := applied.copy()
	applied.mustApply(t, n)
	dropped.mustApply(t, without)
	check := func(step int, what string, want, got *machine) {
		t.Helper()
		if diff := differs(want.place(), got.place()); diff != "" {
			t.Fatalf("cut at %d, %s (-want +got):\n%s", step, what, diff)
		}
	}
	for step, cut := 0, true; cut; step++ {
		m := start.copy()
		cut = m.applyCut(t, n, step)
		m.Revive()
		if step%5 == 0 {
			other := m.copy()
			other.mustApply(t, without)
			check(step, "a bundle without CAs", dropped, other)
		}
		m.mustApply(t, n)
		check(step, "the bundle", applied, m)
		if o := m.observe(t, n); !o.InSync {
			t.Errorf("cut at %d: %+v", step, o)
		}
		m.mustApply(t, without)
		check(step, "the bundle, then one without CAs", dropped, m)
		if step > 500 {
			t.Fatal("the run does not end")
		}
	}
}

func TestImportedCAsAreTrustedAgainAfterARollback(t *testing.T) {
	t.Parallel()
	m, n, _, _, _ := takenOver(t)
	m.edit(func(s *simulation.State) {
		s.Script.Services = map[string]simulation.Behaviour{"kubelet": {Needs: lacksBad}}
	})
	want := m.place()
	_, err := m.apply(t, n.Changed(func(n *node) { n.Files[`C:\k\kubelet.conf`] = "bad" }), applier.Options{})
	var back *applier.RolledBackError
	if !errors.As(err, &back) {
		t.Fatal(err)
	}
	if diff := differs(want, m.place()); diff != "" {
		t.Errorf("not as it was (-want +got):\n%s", diff)
	}
}

// A CA that the list does not name readably stays, and with it the list, for a person to read.
func TestADamagedListOfImportedCAs(t *testing.T) {
	t.Parallel()
	stale, other := authority(t, "stale"), authority(t, "other")
	whole := asPEM(stale, other)
	for _, tt := range []struct {
		name, list string
		// removed and stays are the CAs that go, and whether the list stays, with a note.
		removed []string
		stays   bool
	}{
		{"whole", whole, []string{stale, other}, false},
		{"empty", "", nil, false},
		{"blank", "\r\n \n", nil, false},
		{"cut in its last block", asPEM(stale) + asPEM(other)[:100], []string{stale}, true},
		{"cut in its only block", asPEM(stale)[:100], nil, true},
		{"a block that is no certificate", asPEM(stale, "other"), []string{stale}, true},
		{"a block of another type", asPEM(stale) + strings.ReplaceAll(asPEM(other), "CERTIFICATE", "PRIVATE KEY"), []string{stale}, true},
		{"zeros, as a power failure leaves them", strings.Repeat("\x00", 500), nil, true},
		{"too large", whole + strings.Repeat(" ", 8<<20), nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, n := newMachine(), newNode()
			m.trust(stale, other)
			m.Place(importedPath, bundle.AccessUsers, tt.list)
			if o := m.observe(t, n); (len(o.Notes) > 0) != tt.stays {
				t.Errorf("notes: %q", o.Notes)
			}
			m.mustApply(t, n)
			if list, stays := m.Contents(importedPath); stays != tt.stays || stays && list != tt.list {
				t.Errorf("the list stays: %t", stays)
			}
			for name, der := range map[string]string{"stale": stale, "other": other} {
				if m.trusts(der) == slices.Contains(tt.removed, der) {
					t.Errorf("%s is trusted: %t", name, m.trusts(der))
				}
			}
			if o := m.mustApply(t, n); o.Result != protocol.ResultSame {
				t.Errorf("applied again: %+v", o)
			}
		})
	}
}

func TestAFolderInThePlaceOfTheListStays(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(*machine){
		"a folder": func(m *machine) { m.PlaceFolder(importedPath) }, "a link": func(m *machine) { m.PlaceLink(importedPath) },
	} {
		m, n := newMachine(), newNode()
		place(m)
		m.mustApply(t, n)
		if o := m.observe(t, n); !o.InSync || !slices.Contains(o.Foreign, importedPath) || len(o.Notes) > 0 {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func TestCleanupLeavesTheExistingOperatorsListAlone(t *testing.T) {
	t.Parallel()
	m, _, _, _, _ := takenOver(t)
	want := m.place()
	if _, err := m.engine().Cleanup(t.Context(), applier.Options{}); err != nil {
		t.Fatal(err)
	}
	if diff := differs(want, m.place()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestImportedCAsOnAFolderHost prepares and reads a host by nothing but applier.Host.
func TestImportedCAsOnAFolderHost(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("hosts in folders are for other systems")
	}
	ctx := t.Context()
	clock := hostsim.NewClock(hostsim.Epoch())
	host, err := folderhost.Create(t.TempDir(), folderhost.Options{Facts: hostsim.Facts(), Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	stale, company := trustedCA(authority(t, "stale")), trustedCA(authority(t, "company"))
	err = errors.Join(
		host.MakeDirectory(ctx, `C:\k`, bundle.AccessUsers), host.Write(ctx, importedPath, bundle.AccessUsers, strings.NewReader(asPEM(stale.Value))),
		host.Set(ctx, stale), host.Set(ctx, company))
	if err != nil {
		t.Fatal(err)
	}
	e := &applier.Engine{Host: host, Clock: clock, Permits: bundletest.Permit, Program: "test", Owner: "the test"}
	seen, err := e.Observe(ctx, newNode().Manifest(t), reader(t, newNode(), nil).Contents(), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Apply(ctx, newNode().Manifest(t), reader(t, newNode(), seen.Missing), applier.Options{}); err != nil {
		t.Fatal(err)
	}
	have, err := host.Settings(ctx, []plan.Setting{{Kind: stale.Kind, Name: stale.Name}, {Kind: company.Kind, Name: company.Name}})
	if err != nil || have[0].Present || !have[1].Present {
		t.Errorf("stale %t, company %t, %v", have[0].Present, have[1].Present, err)
	}
	if infos, err := host.Stat(ctx, []string{importedPath}); err != nil || infos[0].Kind != plan.FileAbsent {
		t.Errorf("%+v, %v", infos, err)
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzImported puts anything in the place of the list: CAs that it does not name stay.
func FuzzImported(f *testing.F) {
	company, stale := authority(f, "company"), authority(f, "stale")
	f.Add("")
	f.Add(asPEM(stale))
	f.Add(asPEM(stale)[:200] + asPEM(stale))
	f.Add("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n")
	f.Fuzz(func(t *testing.T, list string) {
		m, n := newMachine(), newNode()
		m.trust(company)
		m.Place(importedPath, bundle.AccessUsers, list)
		m.mustApply(t, n)
		if !m.trusts(company) {
			t.Error("a CA that is not in the list was removed")
		}
		if o := m.observe(t, n); !o.InSync {
			t.Errorf("applied and differs: %+v", o)
		}
	})
}

// TestAnImportedListThatAUserMadeDoesNotCount: a local user could choose which CAs are removed.
func TestAnImportedListThatAUserMadeDoesNotCount(t *testing.T) {
	m, n, _, stale, _ := takenOver(t)
	m.SetOwner(importedPath, plan.OwnerOther)
	o := m.observe(t, n)
	if !slices.ContainsFunc(o.Notes, func(note string) bool { return strings.Contains(note, "is ignored") }) {
		t.Errorf("notes %q", o.Notes)
	}
	if _, err := m.apply(t, n, applier.Options{}); err != nil {
		t.Fatal(err)
	}
	if !m.trusts(stale) {
		t.Error("a CA is removed because a user listed it")
	}
}
