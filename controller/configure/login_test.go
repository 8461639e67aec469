package configure

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"wmco/controller/keys"
	"wmco/controller/keys/username"
	"wmco/controller/windowsnode/record"
)

const olderKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBERERERERERERERERERERERERERERERERERERERERER"

// TestAKeyCountsWhenTheHostHasAcceptedIt over a new connection, under its pinned key, and the host is the Node of its record.
func TestAKeyCountsWhenTheHostHasAcceptedIt(t *testing.T) {
	const notIt = `the host at 10.0.140.21 reports that it is node "win-z", and the operator knows it as node win-a; nothing was changed on it`
	for name, tt := range map[string]struct {
		scene func(*scene)
		// err is why it does not, counts whether the record has the present key and account afterwards, marked whether the Node has them.
		err            string
		counts, marked bool
	}{
		"the host accepts it":            {func(*scene) {}, "", true, true},
		"the host reports to be another": {func(s *scene) { s.claims("WIN-Z", hostA) }, notIt, false, false},
		"the host has another host key": {
			func(s *scene) { s.network.at[hostA].hostKey = hostKey(t, keyB) },
			"the host key of core@10.0.140.21 changed: pinned none, offered another key", false, false,
		},
		"the host is off": {
			func(s *scene) { delete(s.network.at, hostA) }, "connecting to core@10.0.140.21: connection refused", false, false,
		},
		"no host key is pinned": {
			func(s *scene) { s.changeRecord(func(r *record.Record) { r.HostKey = "" }) }, "no host key is pinned for 10.0.140.21", false, false,
		},
		"the Node was made again": {func(s *scene) { s.changeRecord(func(r *record.Record) { r.NodeUID = "before" }) }, "", false, false},
		"the Node was deleted": {
			func(s *scene) { must(t, s.client.Delete(t.Context(), s.node("win-a"))) }, `nodes "win-a" not found`, false, false,
		},
		"the record cannot be read": {
			func(s *scene) { s.fails["get "+record.ConfigMapName(hostA)] = errAPIServer },
			"reading ConfigMap windows-hosts-7: " + errAPIServer.Error(), false, false,
		},
		"the Node cannot be written": {
			func(s *scene) { s.fails["patch win-a"] = errAPIServer }, "writing labels and annotations of Node win-a: " + errAPIServer.Error(), false, false,
		},
		"another operator has proven a newer one since": {func(s *scene) {
			s.onPatch(func() { s.changeRecord(func(r *record.Record) { r.AcceptedKey = "newer" }) })
		}, "", false, true},
		"another host key was pinned since": {
			func(s *scene) { s.onPatch(func() { s.changeRecord(func(r *record.Record) { r.HostKey = "other" }) }) }, "", false, true,
		},
		"it is another Node since": {
			func(s *scene) { s.onPatch(func() { s.changeRecord(func(r *record.Record) { r.NodeUID = "other" }) }) }, "", false, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.isNode()
			s.join(hostA) // the Node has the marks of the account and the key of before
			s.addRecord(s.recordOf(hostA, "win-a", keyA).WithAcceptedKey(olderKey, recordKey()))
			s.changeRecord(func(r *record.Record) { r.KeyReported = true })
			s.host(hostA).Username = "core"
			h := s.hostAt(hostA)
			tt.scene(s)
			got := ""
			if err := h.ConfirmLogin(t.Context(), "win-a"); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.err, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			clear(s.fails)
			r := s.record(record.OfEntry(hostA))
			if counts := r.ProvenKey(recordKey()) == s.publicKey() && r.Account == "core"; counts != tt.counts || r.KeyReported == tt.counts {
				t.Errorf("the record: %+v", r)
			}
			var n corev1.Node
			must(t, client.IgnoreNotFound(s.client.Get(t.Context(), client.ObjectKey{Name: "win-a"}, &n)))
			private, _, err := s.joiner.Login.PrivateKey(t.Context())
			must(t, err)
			account, _ := username.DecryptName(n.Annotations[UsernameAnnotation], private.SecretText())
			if marked := n.Annotations[keys.HashAnnotation] == keys.HashPublicKey(s.publicKey()) && account == "core"; marked != tt.marked {
				t.Errorf("the annotations of the Node: %v", n.Annotations)
			}
			if did := s.network.at[hostA]; did != nil && len(did.did) > 0 {
				t.Errorf("done on the host: %v", did.did)
			}
		})
	}
}

// changeRecord changes the record of hostA.
func (s *scene) changeRecord(change func(*record.Record)) {
	r := s.record(record.OfEntry(hostA))
	change(&r)
	s.addRecord(r)
}

// onPatch has something happen while the Node is patched.
func (s *scene) onPatch(happens func()) {
	done := false
	s.joiner.Client = interceptor.NewClient(s.client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if !done {
				done = true
				happens()
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
}

// TestAHostWithoutAProvenKeyNeedsNoOtherLogin than one of this process, with the account of the record.
func TestAHostWithoutAProvenKeyNeedsNoOtherLogin(t *testing.T) {
	for name, tt := range map[string]struct {
		// reached is true if this process has logged in to the host, which is off since; proven is the key that the record has.
		reached         bool
		proven, account string
		counts          bool
	}{
		"it has logged in":                     {true, "", "Administrator", true},
		"it has not":                           {false, "", "Administrator", false},
		"it has with an earlier account":       {true, "", "core", false},
		"it has, and an earlier key is proven": {true, olderKey, "Administrator", false},
	} {
		s := newScene(t)
		s.isNode()
		s.addRecord(s.recordOf(hostA, "win-a", keyA).WithAcceptedKey(tt.proven, recordKey()))
		h := s.hostAt(hostA)
		if tt.reached {
			h.applyHostBundle(t.Context())
		}
		delete(s.network.at, hostA)
		h.Username = tt.account
		if err := h.ConfirmLogin(t.Context(), "win-a"); (err == nil) != tt.counts {
			t.Errorf("%s: %v", name, err)
		}
		if r := s.record(record.OfEntry(hostA)); (r.ProvenKey(recordKey()) == s.publicKey()) != tt.counts {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestAKeyThatAnAgentReportsIsRecorded for the Node of the record, where another key was proven before; the account stays.
func TestAKeyThatAnAgentReportsIsRecorded(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*record.Record)
		counts bool
	}{
		"an earlier key is proven":        {func(*record.Record) {}, true},
		"the record has no key":           {func(r *record.Record) { r.AcceptedKey = "" }, false},
		"its key is not sealed":           {func(r *record.Record) { r.KeySeal = "" }, false},
		"the record is of another Node":   {func(r *record.Record) { r.NodeUID = "before" }, false},
		"the record has another host key": {func(r *record.Record) { r.HostKey = "other" }, false},
	} {
		s := newScene(t)
		s.isNode()
		s.join(hostA)
		s.addRecord(s.recordOf(hostA, "win-a", keyA).WithAcceptedKey(olderKey, recordKey()))
		s.changeRecord(tt.change)
		h := s.hostAt(hostA)
		delete(s.network.at, hostA)
		h.Username = "core"
		if err := h.RecordReportedKey(t.Context(), "win-a", s.publicKey()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r := s.record(record.OfEntry(hostA))
		if counts := r.ProvenKey(recordKey()) == s.publicKey(); counts != tt.counts || r.KeyReported != tt.counts || r.Account == "core" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestTheKeyMarkOfANodeIsThatOfItsRecord, whatever the kubelet has written there.
func TestTheKeyMarkOfANodeIsThatOfItsRecord(t *testing.T) {
	for name, tt := range map[string]struct {
		mark    string
		record  func(*record.Record)
		written bool
	}{
		"there is none":                  {"", func(*record.Record) {}, true},
		"it is another":                  {"x", func(*record.Record) {}, true},
		"it is the same":                 {keys.HashPublicKey(olderKey), func(*record.Record) {}, false},
		"the key is not sealed":          {"x", func(r *record.Record) { r.KeySeal = "" }, false},
		"no key is known to be accepted": {"x", func(r *record.Record) { r.AcceptedKey = "" }, false},
	} {
		s := newScene(t)
		s.addNode("win-a", hostA, annotated(keys.HashAnnotation, tt.mark))
		r := s.recordOf(hostA, "win-a", keyA).WithAcceptedKey(olderKey, recordKey())
		tt.record(&r)
		written, err := s.joiner.WriteKeyMark(t.Context(), s.node("win-a"), r)
		must(t, err)
		want := tt.mark
		if tt.written {
			want = keys.HashPublicKey(olderKey)
		}
		if got := s.node("win-a").Annotations[keys.HashAnnotation]; written != tt.written || got != want {
			t.Errorf("%s: written %t, %q", name, written, got)
		}
	}
}

// TestWhenTheAccountOfAnEntryIsAnother than that with which the operator has logged in.
func TestWhenTheAccountOfAnEntryIsAnother(t *testing.T) {
	for name, tt := range map[string]struct {
		entries map[string]string
		record  record.Record
		want    bool
	}{
		"the same": {map[string]string{hostA: "username=core"}, record.Record{Entry: hostA, Account: "core"}, false},
		"another":  {map[string]string{hostA: "username=core"}, record.Record{Entry: hostA, Account: "Administrator"}, true},
		"another, in other letters": {
			map[string]string{"WIN-A.example.com": "username=core"}, record.Record{Entry: "win-a.example.com", Account: "Administrator"}, true,
		},
		"of another entry":         {map[string]string{hostB: "username=core"}, record.Record{Entry: hostA, Account: "Administrator"}, false},
		"an entry that is invalid": {map[string]string{hostA: "core"}, record.Record{Entry: hostA, Account: "Administrator"}, false},
		"the host of a Machine":    {map[string]string{hostA: "username=core"}, record.Record{Machine: "m", Account: "Administrator"}, false},
		"no login is known":        {map[string]string{hostA: "username=core"}, record.Record{Entry: hostA}, false},
		"there are no entries":     {nil, record.Record{Entry: hostA, Account: "Administrator"}, false},
	} {
		s := newScene(t)
		if tt.entries != nil {
			s.addConfigMap(InstancesName, tt.entries)
		}
		if got, err := s.joiner.IsAccountChanged(t.Context(), namespace, tt.record); err != nil || got != tt.want {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
}
