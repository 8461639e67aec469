package main

import (
	"context"
	"errors"
	"net"
	"time"

	"wmco/applier/remote"
)

// confirmPause is how long after an attempt to confirm the next one comes.
const confirmPause = time.Second

// confirm tells a machine that it can be reached. It tries until that works or the context ends: a machine may be out of
// reach for a while after a change of its network.
func confirm(ctx context.Context, m *remote.Agent, member *member, show *show) {
	told := map[string]bool{}
	for {
		err := m.Confirm(ctx, member.request.Manifest.Digest)
		if err == nil || ctx.Err() != nil {
			return
		}
		if k := kindOf(err); !told[k] {
			told[k] = true
			show.note(member.target, confirmNote(err))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(confirmPause):
		}
	}
}

func confirmNote(err error) string {
	text := "confirming, tried again and again: " + err.Error()
	if fix := remote.Fix(err); fix != "" {
		text += "; fix: " + fix
	}
	return text
}

// kindOf tells errors apart, but not by the port that each attempt has for itself.
func kindOf(err error) string {
	if network := (*net.OpError)(nil); errors.As(err, &network) && network.Err != nil {
		return remote.Fix(err) + "\n" + network.Err.Error()
	}
	return err.Error()
}
