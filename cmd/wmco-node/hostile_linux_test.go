package main

import (
	"archive/tar"
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"wmco/bundle/archive"
	"wmco/internal/hostsim/bundletest"
)

const (
	// mostInput is the size of a hostile input, and mostMemory what the program may use for it, in bytes.
	mostInput  = 1 << 20
	mostMemory = 256 << 20
	// mostTime is how long it may take.
	mostTime = time.Minute
)

// stream returns members of a tar as the program reads them.
func stream(t *testing.T, members ...[2]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range members {
		h := tar.Header{Typeflag: tar.TypeReg, Name: m[0], Mode: 0o600, Size: int64(len(m[1])), Format: tar.FormatUSTAR}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(m[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Compress(out.Bytes())
}

// No input under 1 MB makes the program use more than 256 MB, or run for long. Whatever it is, nothing on the host changes.
func TestHostileInputsTakeLittleMemory(t *testing.T) {
	const manifest, index = "MANIFEST.json", "contents.json"
	encoded, err := manifestOf(t)
	if err != nil {
		t.Fatal(err)
	}
	many := strings.Repeat("{},", 20<<20)
	s := newSimulated(t, program(t))
	for name, in := range map[string][]byte{
		"zeros in place of a manifest":   stream(t, [2]string{manifest, string(make([]byte, 60<<20))}),
		"a manifest of one string":       stream(t, [2]string{manifest, `{"schema":1,"digest":"` + strings.Repeat("x", 60<<20) + `"}`}),
		"a manifest just small enough":   stream(t, [2]string{manifest, `{"schema":1,"digest":"` + strings.Repeat("x", 15<<20) + `"}`}),
		"a manifest of empty files":      stream(t, [2]string{manifest, `{"schema":1,"layers":[{"layer":{"files":[` + many[:15<<20]}),
		"a manifest that is nested":      stream(t, [2]string{manifest, `{"schema":1,"layers":` + strings.Repeat("[", 30<<20)}),
		"a list of empty contents":       stream(t, [2]string{manifest, encoded}, [2]string{index, "[\n" + many[:12<<20]}),
		"a list that is nested":          stream(t, [2]string{manifest, encoded}, [2]string{index, strings.Repeat("[", 12<<20)}),
		"a member of 100 MB":             stream(t, [2]string{manifest, encoded}, [2]string{"other", string(make([]byte, 100<<20))}),
		"a manifest alone, nested":       []byte(`{"schema":1,"layers":` + strings.Repeat("[", mostInput-100)),
		"a manifest alone, of one value": []byte(`{"schema":1,"digest":"` + strings.Repeat("x", mostInput-100)),
		"random bytes that begin well":   append([]byte{0x28, 0xb5, 0x2f, 0xfd}, bytes.Repeat([]byte{0xa5}, mostInput-4)...),
	} {
		for _, words := range [][]string{{"observe"}, {"apply"}} {
			t.Run(words[0]+" "+name, func(t *testing.T) {
				if len(in) > mostInput {
					t.Fatalf("%d bytes", len(in))
				}
				status, used := s.watched(t, in, words...)
				t.Logf("%d bytes: %d MiB", len(in), used>>20)
				if status != 2 || used > mostMemory {
					t.Errorf("%d bytes: status %d, %d MiB", len(in), status, used>>20)
				}
			})
		}
	}
}

// watched runs the program, and returns its status and the most memory that it had, in bytes. It is killed where that is too much.
func (s simulated) watched(t *testing.T, stdin []byte, args ...string) (status int, used int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), mostTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.program, args...)
	cmd.Env, cmd.Stdin = append(os.Environ(), "WMCO_NODE_ROOT="+s.root, "GOGC=100"), bytes.NewReader(stdin)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the status shows how it ended
		close(ended)
	}()
	for {
		select {
		case <-ended:
			return cmd.ProcessState.ExitCode(), used
		case <-time.After(2 * time.Millisecond):
			if used = max(used, peakOf(cmd.Process.Pid)<<10); used > mostMemory {
				cancel()
			}
		}
	}
}

func manifestOf(t *testing.T) (string, error) {
	t.Helper()
	m, err := bundletest.New().Bundle(t).Manifest()
	if err != nil {
		return "", err
	}
	data, err := m.Encode()
	return string(data), err
}
