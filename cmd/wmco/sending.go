package main

import (
	"io"
	"sync/atomic"

	"wmco/bundle/archive"
)

// sending counts the bytes that leave for one host.
type sending struct {
	archive.Source
	sent atomic.Int64
	// shownBytes is how many were sent at the last call of text.
	shownBytes int64
}

// Open implements archive.Source.
func (s *sending) Open(sha256 string) (io.ReadCloser, error) {
	r, err := s.Source.Open(sha256)
	if err != nil {
		return nil, err
	}
	all := counted{r, &s.sent}
	if seeker, ok := r.(io.Seeker); ok {
		return struct {
			counted
			io.Seeker
		}{all, seeker}, nil
	}
	return all, nil
}

// sendingText is the text about bytes being sent; empty if nothing has been sent since the last call.
func (s *sending) sendingText() string {
	sent := s.sent.Load()
	if sent == s.shownBytes {
		return ""
	}
	s.shownBytes = sent
	return "sending " + byteSize(sent)
}

// counted adds the bytes that are read from it to a number.
type counted struct {
	io.ReadCloser
	sum *atomic.Int64
}

// Read implements io.Reader.
func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.sum.Add(int64(n))
	return n, err
}
