package sshtest

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// LineOptions are the faults of a network. Zero values have no effect.
type LineOptions struct {
	// Delay is for one way: a round trip takes twice as long.
	Delay time.Duration
	// Rate is in bytes per second, each way.
	Rate int64
	// Banner delays the first bytes of the server.
	Banner time.Duration
}

// Line is a network between a test and a server. A connection to Address leads to the server.
type Line struct {
	Address string

	options  LineOptions
	target   string
	listener net.Listener

	mu    sync.Mutex
	stats Stats
	// cut is how many more bytes pass before all connections are reset; -1 for never.
	cut    int64
	frozen bool
	open   map[net.Conn]bool
	answer bool
}

// Stats count what passed.
type Stats struct {
	Connections int
	// RoundTrips counts how often the client sent after the server had: at most so often it waited.
	RoundTrips int
	// Up and Down are bytes from and to the client.
	Up, Down int64
}

// NewLine returns a line to the address. It ends with the test.
func NewLine(t testing.TB, address string, o LineOptions) *Line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback only
	if err != nil {
		t.Fatal(err)
	}
	return NewLineFrom(t, listener, address, o)
}

// NewLineFrom is NewLine with a listener of the caller, which may be in another network than the server.
func NewLineFrom(t testing.TB, listener net.Listener, address string, o LineOptions) *Line {
	t.Helper()
	l := &Line{Address: listener.Addr().String(), options: o, target: address, listener: listener, cut: -1, open: map[net.Conn]bool{}}
	t.Cleanup(func() {
		_ = listener.Close()
		l.Reset()
	})
	go l.acceptConnections()
	return l
}

// Stats returns the counts since the last call.
func (l *Line) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	l.stats, l.answer = Stats{}, false
	return s
}

// Up returns how many bytes the clients have sent since the last call of Stats.
func (l *Line) Up() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats.Up
}

// CutAfter resets all connections when n more bytes have passed, in both directions together. -1 never does.
func (l *Line) CutAfter(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = n
}

// Freeze stops all bytes, and leaves the connections open.
func (l *Line) Freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = true
}

// Thaw ends Freeze.
func (l *Line) Thaw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = false
}

// Reset resets all connections.
func (l *Line) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // closing is all that follows
		}
		_ = c.Close()
	}
	l.open = map[net.Conn]bool{}
}

// Open returns the number of connections.
func (l *Line) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open) / 2
}

func (l *Line) acceptConnections() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.connectUpstream(client)
	}
}

func (l *Line) connectUpstream(client net.Conn) {
	time.Sleep(2 * l.options.Delay)          // the handshake of TCP
	server, err := net.Dial("tcp", l.target) //nolint:noctx // loopback only
	if err != nil {
		_ = client.Close()
		return
	}
	l.mu.Lock()
	l.stats.Connections++
	l.open[client], l.open[server] = true, true
	l.mu.Unlock()
	up, down := newFlow(l.options), newFlow(l.options)
	down.from = time.Now().Add(l.options.Banner)
	var ways sync.WaitGroup
	ways.Go(func() { l.read(client, up, l.up) })
	ways.Go(func() { l.read(server, down, l.down) })
	ways.Go(func() { up.write(server) })
	ways.Go(func() { down.write(client) })
	ways.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, client)
	delete(l.open, server)
	_, _ = client.Close(), server.Close()
}

func (l *Line) up(n int64) {
	l.stats.Up += n
	if l.answer {
		l.stats.RoundTrips++
	}
	l.answer = false
}

func (l *Line) down(n int64) {
	l.stats.Down += n
	l.answer = true
}

// read counts and delays what one side sends.
func (l *Line) read(from net.Conn, to *flow, count func(int64)) {
	defer close(to.pieces)
	for {
		buffer := make([]byte, 32<<10)
		n, err := from.Read(buffer)
		if n > 0 && !l.mayPass(int64(n), count) {
			l.Reset()
			return
		}
		if n > 0 {
			to.send(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

// mayPass reports whether so many bytes may pass.
func (l *Line) mayPass(n int64, count func(int64)) bool {
	for l.isStuck() {
		time.Sleep(time.Millisecond)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	count(n)
	if l.cut < 0 {
		return true
	}
	l.cut = max(0, l.cut-n)
	return l.cut > 0
}

func (l *Line) isStuck() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.frozen && len(l.open) > 0
}

// flow is one direction.
type flow struct {
	options LineOptions
	pieces  chan piece
	// from is when the first byte may pass, free when the last one has.
	from, free time.Time
}

// piece is some bytes and when they arrive.
type piece struct {
	data []byte
	at   time.Time
}

func newFlow(o LineOptions) *flow { return &flow{options: o, pieces: make(chan piece, 256)} }

func (f *flow) send(data []byte) {
	now := time.Now()
	for _, earliest := range []time.Time{f.from, f.free} {
		if earliest.After(now) {
			now = earliest
		}
	}
	if f.options.Rate > 0 {
		now = now.Add(time.Duration(len(data)) * time.Second / time.Duration(f.options.Rate))
		f.free = now
	}
	f.pieces <- piece{data, now.Add(f.options.Delay)}
}

// write passes everything on until the other side has ended, and then ends this one.
func (f *flow) write(to net.Conn) {
	broken := false
	for p := range f.pieces {
		time.Sleep(time.Until(p.at))
		if !broken {
			_, err := to.Write(p.data)
			broken = err != nil
		}
	}
	if end, ok := to.(interface{ CloseWrite() error }); ok {
		if err := end.CloseWrite(); err == nil || errors.Is(err, io.EOF) {
			return
		}
	}
	_ = to.Close() // it was reset
}
