package ssh

import "sync/atomic"

// Traffic counts the logins of a Dialer, and the bytes of all its connections, as they are on the wire. The zero value is
// ready.
type Traffic struct{ logins, sent, received atomic.Int64 }

// CountLogins returns how often a host has let the process in since it began.
func (t *Traffic) CountLogins() int64 { return t.logins.Load() }

// TransferredBytes returns how many were sent and received since the process began.
func (t *Traffic) TransferredBytes() (sent, received int64) { return t.sent.Load(), t.received.Load() }

func (t *Traffic) addLogin() {
	if t != nil {
		t.logins.Add(1)
	}
}

func (t *Traffic) addBytes(sent, received int) {
	if t != nil {
		t.sent.Add(int64(sent))
		t.received.Add(int64(received))
	}
}
