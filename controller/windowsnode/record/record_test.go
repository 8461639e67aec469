package record

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

func full() Record {
	return Record{
		Machine: "0d5c4a5e-5b3f-4f0e-9d8e-4f5a7f0c9a11", MachineName: "win-7x2k", Address: "192.0.2.1", Account: "Administrator", HostKey: "AAAAC3Nz", AcceptedKey: "ssh-ed25519 AAAAC3Nz",
		Node: "win-a", NodeUID: "5f3c", Origin: OriginJoined,
	}
}

func TestARecordSurvivesItsText(t *testing.T) {
	for _, r := range []Record{full(), New(OfEntry("Win.Example.com")), New(OfMachine("a"))} {
		text, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(r.ID(), text)
		r.Schema = Schema
		if err != nil || got != r {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	large := full()
	large.HostKey = strings.Repeat("A", maxRecord)
	if _, err := large.Encode(); !errors.Is(err, ErrInvalid) {
		t.Errorf("a record of more than %d bytes: %v", maxRecord, err)
	}
}

func TestTextsThatAreNoRecord(t *testing.T) {
	id := full().ID()
	whole, err := full().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"nothing": "", "no JSON": "{", "no schema": `{"machine":"0d5c4a5e-5b3f-4f0e-9d8e-4f5a7f0c9a11"}`, "another host": `{"schema":1,"entry":"192.0.2.1"}`,
		"a name of the wrong kind": `{"schema":1,"machine":"0d5c4a5e-5b3f-4f0e-9d8e-4f5a7f0c9a11","node":1}`, "too much": whole + strings.Repeat(" ", maxRecord),
	} {
		if r, err := Decode(id, text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	newer := (*bundle.SchemaError)(nil)
	if _, err := Decode(id, `{"schema":2}`); !errors.As(err, &newer) {
		t.Errorf("that of a newer operator: %v", err)
	}
}

func TestIDs(t *testing.T) {
	for _, tt := range []struct {
		id   ID
		text string
	}{{OfMachine("u"), "the Machine with UID u"}, {OfEntry(" Win.Example.com "), "win.example.com"}, {OfEntry("192.0.2.1"), "192.0.2.1"}} {
		if r := New(tt.id); r.ID() != tt.id || r.String() != tt.text {
			t.Errorf("%s: %s, %q", tt.id, r.ID(), r)
		}
	}
	names := map[string]bool{}
	for _, n := range ConfigMapNames() {
		names[n] = true
	}
	if len(names) != shards {
		t.Errorf("%d names", len(names))
	}
	for _, address := range []string{"192.0.2.1", "192.0.2.2", "a", "b", "c", "d"} {
		if !names[ConfigMapName(OfEntry(address))] {
			t.Errorf("%s is in %s", address, ConfigMapName(OfEntry(address)))
		}
	}
}

func TestASetAnswersByHostAndByNode(t *testing.T) {
	a, b, twice := full(), New("192.0.2.2"), New("192.0.2.3")
	b.Node, b.NodeUID, b.Address = "win-b", "u2", "192.0.2.2"
	twice.Node, twice.NodeUID = "win-b", "u2"
	s := NewSet(a, b)
	if r, ok := s.OfNode("win-a", a.NodeUID); !ok || r != a {
		t.Errorf("%+v", r)
	}
	if r, ok := s.OfNode("win-a", "another"); ok || r != (Record{}) {
		t.Errorf("a Node that was made anew: %+v", r)
	}
	if r, ok := s.RecordOfNode("win-a"); !ok || r != a {
		t.Errorf("by name: %+v", r)
	}
	if r, ok := s.RecordAtAddress("192.0.2.2"); !ok || r != b {
		t.Errorf("by address: %+v", r)
	}
	if _, ok := s.RecordAtAddress(""); ok {
		t.Error("a host without an address was found")
	}
	if diff := cmp.Diff([]Record{b}, s.OtherRecords("win-b", "192.0.2.3")); diff != "" {
		t.Errorf("others (-want +got):\n%s", diff)
	}
	if list := s.OtherRecords("win-b", b.ID()); len(list) > 0 {
		t.Errorf("others than itself: %+v", list)
	}
	if r, ok := NewSet(a, b, twice).OfNode("win-b", "u2"); ok || r != (Record{}) {
		t.Errorf("a Node with two recorded hosts is %+v", r)
	}
	if _, ok := (Set{}).OfNode("win-a", a.NodeUID); ok {
		t.Error("an empty set has a host")
	}
}

func FuzzDecode(f *testing.F) {
	text, err := full().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(full().ID()), text)
	f.Add("192.0.2.1", `{"schema":1,"entry":"192.0.2.1"}`)
	f.Fuzz(func(t *testing.T, id, text string) {
		r, err := Decode(ID(id), text)
		if err != nil {
			return
		}
		again, err := r.Encode()
		if errors.Is(err, ErrInvalid) {
			return // escapes made it longer
		}
		if err != nil {
			t.Fatal(err)
		}
		if have, err := Decode(ID(id), again); err != nil || have.Node != r.Node || have.ID() != ID(id) {
			t.Errorf("%q: %+v, %v", again, have, err)
		}
	})
}

// TestAKeyCountsWithTheSealOfItsHostAlone: who can write records, and has no key of digests, can have no key counted that the operator has not proven for
// this host.
func TestAKeyCountsWithTheSealOfItsHostAlone(t *testing.T) {
	k := bundle.Key("the operator's key of digests")
	good := full().WithAcceptedKey("ssh-ed25519 proven", k)
	if got := good.ProvenKey(k); got != "ssh-ed25519 proven" {
		t.Errorf("%q", got)
	}
	for name, change := range map[string]func(*Record){
		"another key":            func(r *Record) { r.AcceptedKey = "ssh-ed25519 other" },
		"no seal":                func(r *Record) { r.KeySeal = "" },
		"the mask of previews":   func(r *Record) { r.KeySeal = bundle.Masked },
		"moved to another host":  func(r *Record) { r.Machine = "another" },
		"moved to an entry":      func(r *Record) { r.Machine, r.Entry = "", "192.0.2.1" },
		"another host key":       func(r *Record) { r.HostKey = "BBBB" },
		"sealed with other keys": func(r *Record) { *r = r.WithAcceptedKey(r.AcceptedKey, bundle.Key("another")) },
		"no key":                 func(r *Record) { *r = r.WithAcceptedKey("", k) },
	} {
		r := good
		if change(&r); r.ProvenKey(k) != "" {
			t.Errorf("%s counts: %+v", name, r)
		}
	}
	if got := full().WithAcceptedKey("ssh-ed25519 proven", nil).ProvenKey(nil); got != "" {
		t.Errorf("without a key of digests: %q", got)
	}
}
