package configure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/remote"
	"wmco/controller/base"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// Clouds use an address again as soon as its host is gone, and a Machine keeps the address in its status until it is
// deleted whole. A host is that of its Machine by its UID, so the next one at the address is a first contact.

// sharesAddress returns which other Machine has the address of the host: it is not known then whose host it is, and none
// is asked. A Machine that has failed or is being deleted keeps its address from no other one.
func (h Host) sharesAddress() (Progress, bool) {
	i := slices.IndexFunc(h.Wanted.All, func(other render.Node) bool {
		has := other.Address == h.Address || slices.Contains(other.Addresses, h.Address)
		return has && other.Backing == render.BackingMachine && gather.HostID(other) != gather.HostID(h.Node) &&
			(h.Ending || !other.Ending)
	})
	if h.Backing != render.BackingMachine || i < 0 {
		return Progress{}, false
	}
	other := h.Wanted.All[i]
	text := fmt.Sprintf("Machine %s and Machine %s have the same address %s", h.MachineName,
		other.MachineName, h.Address)
	if other.Name != "" {
		text += fmt.Sprintf("; Machine %s is node %s", other.MachineName, other.Name)
	}
	return Progress{
		State: StateWaiting, Reason: ReasonSameHost, Message: text +
			"; nothing is done on the host because of Machine " + h.MachineName, Again: AgainLater,
		Fix: "check in the cloud which of the two Machines has a virtual machine with this address, and delete the other Machine",
	}, true
}

// errOtherKey ends an attempt with a host that had the key of the host which was at its address before: the next one is
// a first contact.
var errOtherKey = errors.New("the pinned host key was that of the host which had the address before; it was removed")

// forgetsOtherKey reports whether an error is that the host has another key than the pinned one, and that this was the
// key of another host, which is forgotten: the next contact is a first one.
func (h Host) forgetsOtherKey(ctx context.Context, err error) (bool, error) {
	var changed *remote.HostKeyError
	if !errors.As(err, &changed) || h.Name != "" {
		return false, nil
	}
	id := gather.HostID(h.Node)
	all, err := h.Login.Records.LiveRecords(ctx)
	if err != nil {
		return false, err
	}
	own, _ := all.RecordByID(id)
	if own.HostKey == "" {
		return h.forgetsPin(ctx)
	}
	theirs := func(other record.ID) bool {
		r, _ := all.RecordByID(other)
		return other != id && r.Node != "" && r.HostKey == own.HostKey && r.Address == h.Address // copied hosts elsewhere may have the key too
	}
	if own.Node != "" || !slices.ContainsFunc(all.IDs(), theirs) {
		return false, nil
	}
	return true, h.Login.Records.ForgetRecord(ctx, id)
}

// forgetsPin forgets a key that was pinned for the address of a Machine by the existing operator or an older version,
// before there was this Machine. One that may have been pinned since is that of its host, as a person knows it, and
// whoever answers with another key is not. If it was for this Machine all the same, a Node reports the address.
func (h Host) forgetsPin(ctx context.Context) (forgotten bool, err error) {
	if h.Backing != render.BackingMachine || h.ClaimedBy != "" {
		return false, nil
	}
	w, err := h.ApplyRequest()
	if err != nil {
		return false, err
	}
	created, err := h.machineCreated(ctx)
	if err != nil || created.IsZero() {
		return false, err
	}
	err = h.Login.ForgetPins(ctx, func(p hosts.Pin) bool {
		before := p.Address == w.Target.Host() && !p.Written.IsZero() && p.Written.Before(created)
		forgotten = forgotten || before
		return before
	})
	return forgotten && err == nil, err
}

// machineCreated returns when the API server created the Machine of the host, zero if it exists no longer. The operator
// may list Machines, not get one.
func (h Host) machineCreated(ctx context.Context) (time.Time, error) {
	list := base.MetadataList(base.MachineKind())
	if err := h.Login.Live.List(ctx, list, client.InNamespace(base.MachinesNamespace),
		client.MatchingFields{"metadata.name": h.MachineName}); err != nil {
		return time.Time{}, fmt.Errorf("reading when Machine %s was created: %w", h.MachineName, err)
	}
	for _, m := range list.Items {
		if string(m.UID) == h.MachineUID {
			return m.CreationTimestamp.Time, nil
		}
	}
	return time.Time{}, nil
}
