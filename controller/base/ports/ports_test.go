package ports

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// serve returns the address of a server.
func serve(t *testing.T, change func(*http.Server)) string {
	t.Helper()
	s := Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, n, err)
	}))
	change(s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-ended })
	return l.Addr().String()
}

// send writes a text to a server, and returns the status of its answer; 0 if it closes the connection without one.
func send(t *testing.T, address, text string) int {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() { _, _ = io.WriteString(c, text) }()
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

func TestHeadersAreBounded(t *testing.T) {
	address := serve(t, func(*http.Server) {})
	for name, tt := range map[string]struct {
		bytes, want int
	}{
		"a token of a service account": {2 << 10, http.StatusOK},
		"a long one":                   {mostHeader, http.StatusOK},
		"more than any token":          {1 << 20, http.StatusRequestHeaderFieldsTooLarge},
	} {
		if got := send(t, address, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer "+strings.Repeat("x", tt.bytes)+"\r\n\r\n"); got != tt.want {
			t.Errorf("%s: status %d, want %d", name, got, tt.want)
		}
	}
}

// TestConnectionsThatStandStillAreClosed, each in the phase that has a limit. The limits are shortened; that there is none would keep the test waiting.
func TestConnectionsThatStandStillAreClosed(t *testing.T) {
	short := 50 * time.Millisecond
	const head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n"
	for name, tt := range map[string]struct {
		shorten func(*http.Server)
		text    string
	}{
		"nothing is sent":            {func(s *http.Server) { s.ReadHeaderTimeout = shorter(t, s.ReadHeaderTimeout, short) }, ""},
		"headers that do not end":    {func(s *http.Server) { s.ReadHeaderTimeout = shorter(t, s.ReadHeaderTimeout, short) }, head},
		"a body that does not end":   {func(s *http.Server) { s.ReadTimeout = shorter(t, s.ReadTimeout, short) }, head + "\r\nx"},
		"no second request is begun": {func(s *http.Server) { s.IdleTimeout = shorter(t, s.IdleTimeout, short) }, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
	} {
		c, err := net.Dial("tcp", serve(t, tt.shorten))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, tt.text)
		// It ends when the server has closed the connection, with an error where the server has not read all that was sent.
		_, err = io.Copy(io.Discard, c)
		t.Logf("%s: closed (%v)", name, err)
		_ = c.Close()
	}
}

// shorter fails the test if there is no limit that can be shortened.
func shorter(t *testing.T, limit, short time.Duration) time.Duration {
	t.Helper()
	if limit <= 0 || limit > 2*time.Minute {
		t.Errorf("a limit of %s is none", limit)
	}
	return short
}
