package remote

import (
	"context"
	"errors"
	"net"
	"time"

	"wmco/bundle"
)

// confirmPause is the time between two attempts to confirm.
const confirmPause = time.Second

// ConfirmReachable confirms what was applied over connections that are opened after the change. It tries until that works
// or the context ends: a host may be unreachable for a while after a change of its network. Each kind of failure is
// reported once.
func (m *Machine) ConfirmReachable(ctx context.Context, d bundle.Digest, report func(error)) {
	dialer := *m.client.pool.dialer
	dialer.Limits.Kept = 0
	fresh := NewClient(dialer, m.client.program).Machine(m.target)
	reported := map[string]bool{}
	for {
		err := fresh.Confirm(ctx, d)
		if err == nil || ctx.Err() != nil {
			return
		}
		if k := kindOf(err); !reported[k] {
			reported[k] = true
			report(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(confirmPause):
		}
	}
}

// kindOf distinguishes errors, but not by the local port that each attempt has for itself.
func kindOf(err error) string {
	if network := (*net.OpError)(nil); errors.As(err, &network) && network.Err != nil {
		return Fix(err) + "\n" + network.Err.Error()
	}
	return err.Error()
}
