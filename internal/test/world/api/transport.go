package api

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
)

// Config returns the configuration of a client of the server, as a user.
func (s *Server) Config(who user.Info) *rest.Config {
	return &rest.Config{Host: "http://world", Transport: s.Transport(who), QPS: -1}
}

// Transport returns what makes requests as a user. They end with their context, or when their answer is closed.
func (s *Server) Transport(who user.Info) http.RoundTripper { return transport{server: s, who: who} }

// SetDown stops the server, whose open requests end, or starts it again with what it had.
func (s *Server) SetDown(down bool) {
	s.open.mu.Lock()
	defer s.open.mu.Unlock()
	s.open.down = down
	for b := range s.open.all {
		_ = b.CloseWithError(errDown)
		b.cancel()
	}
}

// errDown is what clients get while the server is down.
var errDown = errors.New("connection refused: the API server is down")

// connections are the requests that are open.
type connections struct {
	mu   sync.Mutex
	down bool
	all  map[*body]bool
}

type transport struct {
	server *Server
	// who makes the requests; nil is who the certificate of tls or their token names.
	who user.Info
	tls *tls.ConnectionState
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	if t.who != nil {
		ctx = request.WithUser(ctx, t.who)
	}
	out, in := io.Pipe()
	b := &body{PipeReader: out, cancel: cancel, server: t.server}
	if !b.isTaken() {
		cancel()
		return nil, errDown
	}
	w := &writer{header: http.Header{}, body: in, begun: make(chan struct{})}
	served := r.Clone(ctx)
	served.RequestURI, served.RemoteAddr, served.Proto, served.ProtoMajor, served.ProtoMinor = r.URL.RequestURI(), "127.0.0.1:1", "HTTP/2.0", 2, 0
	served.TLS = t.tls
	if served.Body == nil {
		served.Body = http.NoBody
	}
	go func() {
		t.server.handler.ServeHTTP(w, served)
		w.WriteHeader(http.StatusOK)
		_ = in.Close()
		_ = served.Body.Close()
		cancel()
	}()
	b.stop = context.AfterFunc(r.Context(), func() { _ = out.CloseWithError(r.Context().Err()) })
	select {
	case <-w.begun:
	case <-ctx.Done():
		if isClosed(w.begun) {
			break // the answer is whole already
		}
		_ = b.Close()
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		return nil, errDown
	}
	return &http.Response{
		Status: http.StatusText(w.code), StatusCode: w.code, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: w.sent, Body: b, ContentLength: -1, Request: r,
	}, nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// body is the answer as the client reads it. The request ends when it is closed.
type body struct {
	*io.PipeReader
	cancel context.CancelFunc
	stop   func() bool
	server *Server
}

// isTaken reports whether the server takes the request.
func (b *body) isTaken() bool {
	c := &b.server.open
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		return false
	}
	c.all[b] = true
	return true
}

// Close implements io.Closer.
func (b *body) Close() error {
	c := &b.server.open
	c.mu.Lock()
	delete(c.all, b)
	c.mu.Unlock()
	b.stop()
	b.cancel()
	return b.PipeReader.Close()
}

// writer is the answer while it is written.
type writer struct {
	header, sent http.Header
	code         int
	body         *io.PipeWriter
	once         sync.Once
	begun        chan struct{}
}

func (w *writer) Header() http.Header { return w.header }

func (w *writer) WriteHeader(code int) {
	w.once.Do(func() {
		w.code, w.sent = code, w.header.Clone()
		w.sent.Set("Date", time.Now().UTC().Format(http.TimeFormat)) // as net/http has it
		close(w.begun)
	})
}

func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// Flush implements http.Flusher: what is written is there.
func (w *writer) Flush() { w.WriteHeader(http.StatusOK) }

// CloseNotify implements http.CloseNotifier, by which the handlers know a connection of HTTP/2. Nothing is sent: a
// request ends with its context.
func (w *writer) CloseNotify() <-chan bool { return nil }
