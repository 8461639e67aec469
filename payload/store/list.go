package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/payload"
)

// Schema is the version of the list's format.
const Schema = 1

// ListFile is the name of the list in the folder.
const ListFile = "payload.json"

// List is the content of payload.json: every executable of the folder, sorted by name.
type List struct {
	Schema      int     `json:"schema"`
	Executables []Entry `json:"executables"`
}

// Entry is one executable.
type Entry struct {
	Name string `json:"name"`
	// Path is its path on the node.
	Path string `json:"path"`
	// Module and Version are what it was built from. Go is the release of Go that built it.
	Module  string `json:"module"`
	Version string `json:"version"`
	Go      string `json:"go"`
	// Raw is the uncompressed executable. Stored is the file in the folder, compressed with zstd.
	Raw    Blob `json:"raw"`
	Stored Blob `json:"stored"`
}

// Blob is a content.
type Blob = payload.Blob

// File returns the name of the file that holds the executable.
func (e Entry) File() string { return FileOf(e.Name) }

// FileOf returns the name of the file that holds the executable of that name.
func FileOf(name string) string { return name + ".exe.zst" }

// Encode returns the only form that Decode reads: sorted by name, indented, with an end of line.
func (l List) Encode() ([]byte, error) {
	l.Executables = append([]Entry{}, l.Executables...)
	slices.SortFunc(l.Executables, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	if err := l.check(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(l); err != nil {
		return nil, fmt.Errorf("encoding the list of executables: %w", err)
	}
	return out.Bytes(), nil
}

// Decode reads the exact bytes that Encode writes and refuses anything else. The list that it returns has no file
// outside the folder and only paths of the table.
func Decode(data []byte) (List, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var l List
	err := dec.Decode(&l)
	if l.Schema > Schema {
		return List{}, &bundle.SchemaError{What: ListFile, Have: l.Schema, Want: Schema}
	}
	if err != nil {
		return List{}, fmt.Errorf("reading the list of executables: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return List{}, errors.New("reading the list of executables: there is data after its end")
	}
	again, err := l.Encode()
	if err != nil {
		return List{}, err
	}
	if !bytes.Equal(again, data) {
		return List{}, errors.New("reading the list of executables: it is not in the form that make payload writes")
	}
	return l, nil
}

func (l List) check() error {
	if l.Schema != Schema {
		return fmt.Errorf("checking the list of executables: schema %d is unknown", l.Schema)
	}
	for i, e := range l.Executables {
		if i > 0 && l.Executables[i-1].Name == e.Name {
			return fmt.Errorf("checking %q: it is listed twice", e.Name)
		}
		if err := e.check(); err != nil {
			return fmt.Errorf("checking %q: %w", e.Name, err)
		}
	}
	return nil
}

// check compares an entry with the table: a payload of another version of this program is refused.
func (e Entry) check() error {
	x := payload.Find(e.Name)
	if x.Name != e.Name {
		return errors.New("this version of wmco does not ship it")
	}
	for _, b := range []Blob{e.Raw, e.Stored} {
		if err := b.CheckValues(); err != nil {
			return err
		}
	}
	path, version := x.Path, x.Version
	if e.Name == payload.Agent {
		path, version = payload.AgentPath(e.Raw.Digest), e.Version
	}
	switch {
	case e.Module != x.Module || e.Version != version || e.Version == "":
		return fmt.Errorf("it is %s %q, but this version of wmco ships %s %q", e.Module, e.Version, x.Module, version)
	case e.Path != path:
		return fmt.Errorf("its path is %q, but this version of wmco installs it at %q", e.Path, path)
	case !strings.HasPrefix(e.Go, "go1."):
		return fmt.Errorf("%q is not a release of Go", e.Go)
	}
	return nil
}
