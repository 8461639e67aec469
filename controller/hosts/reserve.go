package hosts

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/windowsnode/record"
)

// ReserveName notes that an instance is the Node of a name before its first certificate is approved: it has proved that
// it holds the key. So it gets no certificate of a second name, and no other host becomes this Node. That there is no
// Node of the name yet is asked once more: a host chooses for how long it lets the operator wait for its answers, and
// so how old the list of Nodes is that the request was judged by. The instance is given as its entry in
// windows-instances.
func (r *Records) ReserveName(ctx context.Context, entry, node string) error {
	id := record.OfEntry(entry)
	all, err := r.LiveRecords(ctx)
	if err != nil {
		return err
	}
	if others := all.OtherRecords(node, id); len(others) > 0 {
		return fmt.Errorf("the name is that of %s", others[0])
	}
	if err := r.Live.Get(ctx, client.ObjectKey{Name: node}, &corev1.Node{}); err == nil {
		return errors.New("a Node of this name exists since the host was asked")
	} else if !apierrors.IsNotFound(err) {
		return err
	}
	return r.UpdateRecord(ctx, id, func(have record.Record) (record.Record, error) {
		if have.Node != "" && have.Node != node {
			return have, fmt.Errorf("the host is node %s (fix: give the computer its name back, or, if it was "+
				"renamed on purpose, %s)", have.Node, r.RemoveCommand(id))
		}
		have.Node = node
		return have, nil
	})
}
