package gateway

import (
	"fmt"
	"net/http"
	"strings"

	"wmco/gateway/places"
)

// attempt is how a place answered.
type attempt struct {
	place places.Place
	// missing is true if the place says that it has no such image.
	missing bool
	// refused is true if the place has the image, and a policy refuses it.
	refused bool
	text    string
}

// isRefused reports whether a policy has refused what the last place has.
func isRefused(tried []attempt) bool { return len(tried) > 0 && tried[len(tried)-1].refused }

// describe returns what all places said, for the event of the Pod and the list of troubles. Part of it comes from registries: it is ASCII, of a bounded
// length.
func describe(t target, d places.Decision, tried []attempt) string {
	var parts []string
	for _, a := range tried {
		parts = append(parts, a.place.Name()+": "+a.text)
	}
	for _, s := range d.Skipped {
		parts = append(parts, s.Name+": not asked, "+s.Why)
	}
	result := "is at no place"
	if isRefused(tried) {
		result = "is not pulled"
	}
	text := strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return ' '
		}
		return c
	}, fmt.Sprintf("%s %s: %s", t.Image, result, strings.Join(parts, "; ")))
	return text[:min(len(text), maxReason)]
}

// maxReason is the length of the longest reason phrase in bytes.
const maxReason = 1 << 10

// refusePull ends a request with a status whose reason phrase is the text, without control characters: the only part of an answer to HEAD that containerd shows (net/http does not let
// a handler choose it, so the connection is taken over). It needs HTTP/1.1.
func refusePull(w http.ResponseWriter, r *http.Request, status int, text string) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, text, status)
		return
	}
	connection, buffer, err := hijacker.Hijack()
	if err != nil {
		http.Error(w, text, status)
		return
	}
	defer func() { _ = connection.Close() }()
	body := text + "\n"
	_, _ = fmt.Fprintf(buffer, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", status, text, len(body))
	if r.Method != http.MethodHead {
		_, _ = buffer.WriteString(body)
	}
	_ = buffer.Flush()
}
