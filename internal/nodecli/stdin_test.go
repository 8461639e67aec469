package nodecli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"wmco/applier"
	"wmco/bundle/archive"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/bundletest"
)

func TestStdinThatIsReadToItsEnd(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 20_000)
	for name, from := range map[string]io.Reader{
		"at once": bytes.NewReader(data), "byte by byte": iotest.OneByteReader(bytes.NewReader(data)), "with its end": iotest.DataErrReader(bytes.NewReader(data)),
	} {
		got, err := io.ReadAll(newPatient(t.Context(), from, time.Minute))
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func TestStdinEndsWithTheContext(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	never, closeNever := io.Pipe()
	t.Cleanup(func() { _ = closeNever.Close() })
	in := newPatient(ctx, io.MultiReader(strings.NewReader("text"), never), time.Minute)
	begin := make([]byte, 4)
	if _, err := io.ReadFull(in, begin); err != nil || string(begin) != "text" {
		t.Fatalf("%q, %v", begin, err)
	}
	interrupt()
	if _, err := in.Read(begin); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// While contents arrive the host is locked: an upload that stalls must not lock out the next run for as long as its connection stands.
func TestAStalledUploadGivesUpTheLock(t *testing.T) {
	synctest.Test(t, checkAStalledUpload)
}

func checkAStalledUpload(t *testing.T) {
	t.Helper()
	clock := hostsim.NewClock(hostsim.Epoch())
	host := hostsim.NewMemory(hostsim.Facts(), clock)
	n := bundletest.New()
	noise := make([]byte, 2<<20)
	if _, err := io.ReadFull(rand.NewChaCha8([32]byte{1}), noise); err != nil {
		t.Fatal(err)
	}
	n.Programs[`C:\k\large.exe`] = string(noise)
	whole := n.Archive(t, nil)
	e := &applier.Engine{Host: host, Clock: clock, Permits: bundletest.Permit, Program: "test", Owner: "a run that stalls"}
	r, err := archive.NewReader(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	seen, err := e.Observe(t.Context(), r.Manifest, r.Contents(), false)
	if err != nil {
		t.Fatal(err)
	}
	whole = n.Archive(t, seen.Missing)
	stalled, other := io.Pipe()
	defer other.Close()
	go func() { _, _ = other.Write(whole[:len(whole)/2]) }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel() // the reader that was left behind ends with the test
	in := newPatient(ctx, stalled, stdinSilence)
	if r, err = archive.NewReader(in); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := e.Apply(t.Context(), r.Manifest, r, applier.Options{})
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(2 * stdinSilence):
		t.Fatal("it holds the lock")
	}
	release, err := host.Lock(t.Context(), "the next run")
	if err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
