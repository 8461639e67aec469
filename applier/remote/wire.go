package remote

import (
	"net"
	"sync/atomic"
	"time"
)

// wire is a TCP connection that ends when nothing has come for the time of quiet.
type wire struct {
	net.Conn
	// quiet is 0 as long as somebody else sets the deadlines.
	quiet atomic.Int64
}

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	if quiet := time.Duration(w.quiet.Load()); quiet > 0 {
		if err := w.SetReadDeadline(time.Now().Add(quiet)); err != nil {
			return 0, err
		}
	}
	return w.Conn.Read(p)
}

// watch begins to expect something every quiet; 0 expects nothing. What a Read is waiting for now is covered too.
func (w *wire) watch(quiet time.Duration) error {
	w.quiet.Store(int64(quiet))
	if quiet == 0 {
		return w.SetDeadline(time.Time{})
	}
	if err := w.SetWriteDeadline(time.Time{}); err != nil {
		return err
	}
	return w.SetReadDeadline(time.Now().Add(quiet))
}
