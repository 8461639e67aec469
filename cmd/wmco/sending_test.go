package main

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	bars "github.com/jedib0t/go-pretty/v6/progress"

	"wmco/applier/protocol"
	"wmco/applier/remote"
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

// The text of a bar is written by events, and once a second by the bytes sent.
func TestAResultStaysUntilTheEnd(t *testing.T) {
	target := remote.Target{User: "u", Address: "win-1:22"}
	bar := &bars.Tracker{}
	p := &progress{
		bars: bars.NewWriter(), byHost: map[remote.Target]*bars.Tracker{target: bar}, now: time.Now,
		waits: map[remote.Target]*remote.Awaited{}, sends: map[remote.Target]*sending{},
	}
	source := p.beginHost(target, nil, someContent{make([]byte, 20<<10)})
	send := func() {
		r, err := source.Open("x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Fatal(err)
		}
		p.showWaiting()
	}
	if send(); bar.Message != "u@win-1  sending 20 KiB" {
		t.Errorf("while it sends: %q", bar.Message)
	}
	p.event(target, protocol.Event{Event: protocol.EventResult, Result: protocol.ResultRolledBack, Message: "rolled back: kubelet"})
	if send(); bar.Message != "u@win-1  rolled back" {
		t.Errorf("after the result: %q", bar.Message)
	}
}
