package payloadbuild

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"wmco/payload/store"
)

const (
	modeFile   = 0o644
	modeFolder = 0o755
)

// stamp is what is kept of a finished build.
type stamp struct {
	// Key is that of the recipe it was built by.
	Key   string      `json:"key"`
	Entry store.Entry `json:"entry"`
	// Info is the build information, in Go's own text form.
	Info string `json:"info"`
}

// The folders of the results.
func (o Options) payloadDir() string { return filepath.Join(o.Out, "payload") }
func (o Options) sbomDir() string    { return filepath.Join(o.Out, "sbom") }
func (o Options) stampDir() string   { return filepath.Join(o.Out, "payload-stamps") }

func (o Options) stampFile(name string) string { return filepath.Join(o.stampDir(), name+".json") }

// current returns the stamp of a recipe if it was built by it, and what it built is still there.
func (o Options) current(r recipe) (stamp, bool) {
	data, err := os.ReadFile(o.stampFile(r.Name))
	if err != nil {
		return stamp{}, false
	}
	var s stamp
	if json.Unmarshal(data, &s) != nil || s.Key != r.key || s.Entry.Name != r.Name {
		return stamp{}, false
	}
	file, err := os.Open(filepath.Join(o.payloadDir(), store.FileOf(r.Name)))
	if err != nil {
		return stamp{}, false
	}
	defer file.Close() //nolint:errcheck // only read from
	m := newMeter(discard{})
	if _, err := file.WriteTo(m); err != nil {
		return stamp{}, false
	}
	return s, m.blob() == s.Entry.Stored
}

type discard struct{}

// Write implements io.Writer.
func (discard) Write(p []byte) (int, error) { return len(p), nil }

func (o Options) keep(s stamp) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return write(o.stampFile(s.Entry.Name), append(data, '\n'))
}

func (s stamp) info() (*debug.BuildInfo, error) {
	info, err := debug.ParseBuildInfo(s.Info)
	if err != nil {
		return nil, fmt.Errorf("reading the build information of %s: %w", s.Entry.Name, err)
	}
	return info, nil
}

// write puts a file in place, unless it is there already.
func write(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), modeFolder); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".writing-")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) //nolint:errcheck // it is gone when all went well
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Chmod(modeFile), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
