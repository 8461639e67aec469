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

// ConfirmReachable confirms a bundle until that works or the context ends: a host may be unreachable for a while after
// a change of its network. Each kind of failure is reported once. The client's transport must keep no connections, so
// that each attempt opens one after the change.
func (a *Agent) ConfirmReachable(ctx context.Context, d bundle.Digest, report func(error)) {
	reported := map[string]bool{}
	for {
		err := a.Confirm(ctx, d)
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
		return SuggestFix(err) + "\n" + network.Err.Error()
	}
	return err.Error()
}
