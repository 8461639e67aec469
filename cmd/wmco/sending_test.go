package main

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"wmco/bundle/archive"
)

// someContent is a source of one content.
type someContent struct{ data []byte }

func (someContent) Contents() []archive.Content { return nil }

func (s someContent) Open(sha256 string) (io.ReadCloser, error) {
	if sha256 == "gone" {
		return nil, errors.New("gone")
	}
	return struct {
		io.ReadSeeker
		io.Closer
	}{bytes.NewReader(s.data), io.NopCloser(nil)}, nil
}

func TestWhatIsSentIsCounted(t *testing.T) {
	s := &sending{Source: someContent{make([]byte, 20<<10)}}
	if _, err := s.Open("gone"); err == nil {
		t.Error("a content that does not exist is opened")
	}
	r, err := s.Open("x")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.(io.Seeker); !ok {
		t.Error("parts cannot be skipped any more")
	}
	if _, err := r.(io.Seeker).Seek(8<<10, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, r); n != 12<<10 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if first, second := s.sendingText(), s.sendingText(); first != "sending 12 KiB" || second != "" {
		t.Errorf("%q, then %q", first, second)
	}
}
