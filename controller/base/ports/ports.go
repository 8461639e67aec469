// Package ports limits what clients of the operator's ports can use. Whoever reaches a port needs no credential to
// connect, to send headers and to keep a connection.
package ports

import (
	"io"
	"log"
	"net/http"
	"time"
)

const (
	// mostHeader bounds the headers of a request, in bytes: net/http takes 4 KiB more, which the longest tokens of
	// service accounts need half of.
	mostHeader = 8 << 10
	// headerLimit is for the TLS handshake and the headers, readLimit for a whole request, writeLimit for its answer
	// too.
	headerLimit = 5 * time.Second
	readLimit   = 10 * time.Second
	writeLimit  = time.Minute
	// idleLimit is how long a connection waits for the next request: longer than the minute after which Prometheus and
	// the kubelet ask again.
	idleLimit = 90 * time.Second
)

// StopWithin is how long answers that have begun may take when the operator stops.
const StopWithin = 5 * time.Second

// Server returns a server whose requests are bounded. It logs nothing: each handshake that fails would be a line.
func Server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, MaxHeaderBytes: mostHeader,
		ReadHeaderTimeout: headerLimit, ReadTimeout: readLimit, WriteTimeout: writeLimit, IdleTimeout: idleLimit,
		ErrorLog: log.New(io.Discard, "", 0),
	}
}
