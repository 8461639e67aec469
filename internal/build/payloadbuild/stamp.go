package payloadbuild

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"wmco/payload/store"
)

const (
	modeFile   = 0o644
	modeFolder = 0o755
)

// stamp is the record of a finished build.
type stamp struct {
	// Key is the key of the recipe.
	Key   string      `json:"key"`
	Entry store.Entry `json:"entry"`
	// Info is the build information in the text form of Go.
	Info string `json:"info"`
}

// The folders of the results.
func (o Options) payloadDir() string { return filepath.Join(o.Out, "payload") }
func (o Options) sbomDir() string    { return filepath.Join(o.Out, "sbom") }
func (o Options) stampDir() string   { return filepath.Join(o.Out, "payload-stamps") }

func (o Options) stampFile(name string) string { return filepath.Join(o.stampDir(), name+".json") }

// currentStamp returns the stamp of a recipe if its executable was built and is unchanged.
func (o Options) currentStamp(r recipe) (stamp, bool) {
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
	m := newMeter(io.Discard)
	if _, err := file.WriteTo(m); err != nil {
		return stamp{}, false
	}
	return s, m.blob() == s.Entry.Stored
}

func (o Options) keepStamp(s stamp) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(o.stampFile(s.Entry.Name), append(data, '\n'))
}

func (s stamp) info() (*debug.BuildInfo, error) {
	info, err := debug.ParseBuildInfo(s.Info)
	if err != nil {
		return nil, fmt.Errorf("reading the build information of %s: %w", s.Entry.Name, err)
	}
	return info, nil
}

// writeFile replaces a file, unless it has these contents already.
func writeFile(path string, data []byte) error {
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
	defer os.Remove(temp.Name()) //nolint:errcheck // after a success it does not exist
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Chmod(modeFile), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
