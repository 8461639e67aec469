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

// Clouds reuse the address of a deleted host at once, and a Machine keeps the address in its status until it is deleted. A
// host belongs to its Machine by the UID, so the first login to the next host at the address is a first contact.

// sharesAddress is for a host whose address another Machine has too: the operator does not log in, because it does not know
// whose host it is. An ending Machine does not block another one.
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

// errOtherKey ends an attempt after the pinned key was removed, because it was that of the former host at the address. The
// next attempt is a first contact.
var errOtherKey = errors.New("the pinned host key was that of the host which had the address before; it was removed")

// forgetsOtherKey is for a host that has another key than the pinned one. If the pinned key was that of another host, it
// removes the pin and returns true.
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

// forgetsPin removes a key that the existing operator or an older version pinned for the address of a Machine, before the
// Machine was created. A key that may have been pinned later stays: a host with another key is not this Machine's. If a
// Node reports the address, the key stays too.
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

// machineCreated returns when the Machine of the host was created, zero if it does not exist. The operator may list
// Machines, not get one.
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
