package configure

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/gather"
	"wmco/controller/keys"
	"wmco/controller/windowsnode/record"
)

// A key counts for the host of a Node when the operator has logged in with it, or when the node agent reports that it has
// written it (render.Settings.ConfirmsKeys); an account, and the first key, only after a login:
//
//	Secret: another key --render--> bundle with both keys --agent--> the host accepts both
//	login with the new key, or report --> annotations of the Node, then Record.AcceptedKey --render--> bundle with the new key alone
//
// The record is written last: an operator that is killed before does it once more. Annotations of the Node about keys are
// not read.

// WriteKeyMark restores the annotation of a Node about its key from the record of the host, because a kubelet can change
// annotations of its own Node. It reports whether it wrote anything.
func (j *Joiner) WriteKeyMark(ctx context.Context, node *corev1.Node, r record.Record) (bool, error) {
	accepted := r.ProvenKey(j.Login.RecordKey)
	if accepted == "" {
		return false, nil
	}
	return j.WriteMarks(ctx, node,
		Marks{Annotations: map[string]string{keys.HashAnnotation: keys.HashPublicKey(accepted)}})
}

// ConfirmLogin logs in to the host of a Node over a new connection, with the current key and the account of the inputs,
// and records that the host accepts them. If the record has no key yet and this process has already logged in, it does not
// log in again.
func (h Host) ConfirmLogin(ctx context.Context, name string) error {
	w, err := h.ApplyRequest()
	if err != nil {
		return err
	}
	id := gather.HostID(h.Node)
	before, _, err := h.Login.Records.GetRecord(ctx, id)
	if err != nil {
		return err
	}
	public := ""
	if before.ProvenKey(h.Login.RecordKey) == "" && before.Account == w.Target.User {
		public = h.Login.UsedKey(id)
	}
	if public == "" {
		if public, err = h.Hosts.ProveLogin(ctx, h.Login, w); err != nil {
			return err
		}
	}
	return h.recordKey(ctx, name, before, record.Record{AcceptedKey: public, Account: w.Target.User})
}

// RecordReportedKey records that the host of a Node accepts a key, because its node agent has reported the bundle with it.
// The host had accepted an earlier key with the same account.
func (h Host) RecordReportedKey(ctx context.Context, name, public string) error {
	before, _, err := h.Login.Records.GetRecord(ctx, gather.HostID(h.Node))
	if err != nil || before.ProvenKey(h.Login.RecordKey) == "" {
		return err
	}
	return h.recordKey(ctx, name, before, record.Record{AcceptedKey: public, KeyReported: true, Account: before.Account})
}

// recordKey writes the key and the account of a record to the Node, and to the record unless that has changed since.
func (h Host) recordKey(ctx context.Context, name string, before, now record.Record) error {
	var node corev1.Node
	if err := h.Login.Live.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return err
	}
	if !before.IsNode(node.Name, node.UID) {
		return nil // the Node was replaced; the new one is recorded first
	}
	if err := h.writeLoginMarks(ctx, &node, now.AcceptedKey); err != nil {
		return err
	}
	return h.Login.Records.UpdateRecord(ctx, before.ID(), func(r record.Record) (record.Record, error) {
		// Another operator may have led since, and proven a newer key.
		if r.AcceptedKey == before.AcceptedKey && r.HostKey == before.HostKey && r.IsNode(node.Name, node.UID) {
			r = r.WithAcceptedKey(now.AcceptedKey, h.Login.RecordKey)
			r.KeyReported, r.Account = now.KeyReported, now.Account
		}
		return r, nil
	})
}

// writeLoginMarks writes the accepted key to the Node, and the account if the node is an instance.
func (h Host) writeLoginMarks(ctx context.Context, node *corev1.Node, public string) error {
	m, err := h.hostMarks(ctx, node)
	if err != nil {
		return err
	}
	only := Marks{Annotations: map[string]string{keys.HashAnnotation: keys.HashPublicKey(public)}}
	if text, ok := m.Annotations[UsernameAnnotation]; ok {
		only.Annotations[UsernameAnnotation] = text
	}
	_, err = h.WriteMarks(ctx, node, only)
	return err
}

// IsAccountChanged reports whether the entry of an instance names another account than that with which the operator has
// logged in.
func (j *Joiner) IsAccountChanged(ctx context.Context, namespace string, r record.Record) (bool, error) {
	if r.Entry == "" || r.Account == "" {
		return false, nil
	}
	var instances corev1.ConfigMap
	if err := j.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: InstancesName}, &instances); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	for entry, text := range instances.Data {
		if account := gather.InstanceAccount(entry, text); record.OfEntry(entry) == r.ID() && account != "" {
			return account != r.Account, nil
		}
	}
	return false, nil
}
