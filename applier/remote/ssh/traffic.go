package ssh

import "sync/atomic"

// Traffic counts the bytes of all connections of a Dialer, as they are on the wire. The zero value is ready.
type Traffic struct{ sent, received atomic.Int64 }

// TransferredBytes returns how many were sent and received since the process began.
func (t *Traffic) TransferredBytes() (sent, received int64) { return t.sent.Load(), t.received.Load() }

func (t *Traffic) addBytes(sent, received int) {
	if t != nil {
		t.sent.Add(int64(sent))
		t.received.Add(int64(received))
	}
}
