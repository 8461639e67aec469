package hosts

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/windowsnode/record"
)

// know writes that a host is a Node.
func know(t *testing.T, r *Records, id record.ID, node string) {
	t.Helper()
	err := r.UpdateRecord(t.Context(), id, func(h record.Record) (record.Record, error) {
		h.Node, h.NodeUID = node, "uid"
		return h, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRecordsAreKeptAndRead(t *testing.T) {
	r := newLogin(t).Records
	for id, node := range map[record.ID]string{"192.0.2.1": "win-a", "192.0.2.2": "win-b", record.OfMachine("m"): "win-c"} {
		know(t, r, id, node)
	}
	for name, read := range map[string]func() (record.Set, error){
		"live":   func() (record.Set, error) { return r.LiveRecords(t.Context()) },
		"cached": func() (record.Set, error) { all, _, err := r.CachedRecords(t.Context()); return all, err },
	} {
		all, err := read()
		if err != nil || len(all.IDs()) != 3 {
			t.Fatalf("%s: %v, %v", name, all.IDs(), err)
		}
		if h, ok := all.OfNode("win-c", "uid"); !ok || h.Machine != "m" {
			t.Errorf("%s: %+v", name, h)
		}
	}
	if err := r.ForgetRecord(t.Context(), "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
	know(t, r, "192.0.2.2", "win-d")
	all, _, err := r.CachedRecords(t.Context())
	if _, gone := all.RecordOfNode("win-a"); err != nil || gone {
		t.Errorf("a record that was removed is read again: %v", err)
	}
	if _, ok := all.RecordOfNode("win-d"); !ok {
		t.Errorf("a change was not read: %v", all.IDs())
	}
}

// TestARecordThatChangesIsNotForgotten: a host may join again while the records of hosts that no longer exist are removed.
func TestARecordThatChangesIsNotForgotten(t *testing.T) {
	r := newLogin(t).Records
	know(t, r, "192.0.2.1", "win-a")
	was, _, err := r.GetRecord(t.Context(), "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	know(t, r, "192.0.2.1", "win-b")
	if forgotten, err := r.ForgetUnchanged(t.Context(), was); forgotten || err != nil {
		t.Errorf("a record that has changed is forgotten: %t, %v", forgotten, err)
	}
	now, known, err := r.GetRecord(t.Context(), "192.0.2.1")
	if err != nil || !known || now.Node != "win-b" {
		t.Errorf("%+v, %t, %v", now, known, err)
	}
	for _, want := range []bool{true, false} { // once
		if forgotten, err := r.ForgetUnchanged(t.Context(), now); forgotten != want || err != nil {
			t.Errorf("%t, %v, want %t", forgotten, err, want)
		}
	}
	if _, known, _ := r.GetRecord(t.Context(), "192.0.2.1"); known {
		t.Error("it is still there")
	}
}

// TestARecordThatIsDamagedIsNoFirstContact: its host could be taken for another one. The others are read.
func TestARecordThatIsDamagedIsNoFirstContact(t *testing.T) {
	l := newLogin(t)
	r := l.Records
	target := entryAt("192.0.2.1:22")
	if err := l.Pin(t.Context(), target, hostKey(t, 1)); err != nil {
		t.Fatal(err)
	}
	know(t, r, "192.0.2.2", "win-b")
	var cm corev1.ConfigMap
	at := client.ObjectKey{Namespace: namespace, Name: record.ConfigMapName("192.0.2.1")}
	if err := r.Live.Get(t.Context(), at, &cm); err != nil {
		t.Fatal(err)
	}
	cm.Data["192.0.2.1"] = "{"
	if err := r.Client.Update(t.Context(), &cm); err != nil {
		t.Fatal(err)
	}
	if keys, err := l.Pinned(t.Context(), target); err == nil {
		t.Errorf("the key of a host with a damaged record is %v", keys)
	}
	if err := l.Pin(t.Context(), target, hostKey(t, 2)); err == nil {
		t.Error("another key was pinned")
	}
	all, damaged, err := r.CachedRecords(t.Context())
	if _, ok := all.RecordOfNode("win-b"); err != nil || !ok || damaged == nil || !strings.Contains(damaged.Error(), r.RemoveCommand("192.0.2.1")) {
		t.Errorf("%v, damaged %v, %v", all.IDs(), damaged, err)
	}
	if _, err := r.LiveRecords(t.Context()); err == nil {
		t.Error("all records were read")
	}
}

// TestARecordCountsWhereItBelongs: a second ConfigMap, or another key, gives a host no other identity.
func TestARecordCountsWhereItBelongs(t *testing.T) {
	r := newLogin(t).Records
	know(t, r, "192.0.2.1", "win-a")
	text, err := record.Record{Entry: "192.0.2.9", Node: "win-x"}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	other := "windows-hosts-x"
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: other, Labels: map[string]string{RecordsLabel: "true"}}, Data: map[string]string{"192.0.2.9": text}}
	if err := r.Client.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	all, _, err := r.CachedRecords(t.Context())
	if err != nil || len(all.IDs()) != 1 {
		t.Errorf("%v, %v", all.IDs(), err)
	}
}

// TestRecordsOfAConfigMap: a record counts only in the ConfigMap of its ID, so that whoever may write another one gives no host an identity.
func TestRecordsOfAConfigMap(t *testing.T) {
	const id, other = record.ID("192.0.2.1"), record.ID("192.0.2.2")
	text := func(id record.ID) string {
		h := record.New(id)
		h.Node, h.NodeUID = "win-a", "uid"
		text, err := h.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	r := &Records{Namespace: namespace}
	for name, tt := range map[string]struct {
		configMap string
		data      map[string]string
		want      int
		damaged   bool
	}{
		"its own":                           {record.ConfigMapName(id), map[string]string{string(id): text(id)}, 1, false},
		"another ConfigMap":                 {"windows-hosts-x", map[string]string{string(id): text(id)}, 0, false},
		"a damaged one elsewhere":           {"windows-hosts-x", map[string]string{string(id): "{"}, 0, false},
		"the record of another host":        {record.ConfigMapName(id), map[string]string{string(id): text(other)}, 0, true},
		"a damaged one":                     {record.ConfigMapName(id), map[string]string{string(id): "{"}, 0, true},
		"a ConfigMap without any":           {record.ConfigMapName(id), nil, 0, false},
		"a key that is the ID of no record": {record.ConfigMapName(id), map[string]string{"": text(id)}, 0, false},
	} {
		d := r.decodeRecords(tt.configMap, tt.data)
		if len(d.records) != tt.want || (d.damaged != nil) != tt.damaged {
			t.Errorf("%s: %d records, damaged: %v", name, len(d.records), d.damaged)
		}
	}
}
