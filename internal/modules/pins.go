package modules

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// State is what the module proxy does with a pin.
type State string

// The states of a pin.
const (
	// Listed versions are served, and named by the proxy.
	Listed State = "listed"
	// Unlisted versions are served, and not named: a proxy that serves a subset may stop.
	Unlisted State = "served, not listed"
	// NotServed versions cannot be downloaded.
	NotServed State = "not served"
)

// Pin is one version of one module.
type Pin struct{ Module, Version string }

// String is how the go command writes it.
func (p Pin) String() string { return p.Module + "@" + p.Version }

// File is a go.mod and what its packages may need.
type File struct {
	// Path is that of the go.mod.
	Path string
	Pins []Pin
	// Err is why the pins are not known: a version whose own go.mod is not served, for instance.
	Err error
}

// ReadFiles returns every go.mod below root that git tracks, but for test data, each with its pins: the versions that are
// selected and whose contents go.sum has a checksum of.
func ReadFiles(ctx context.Context, root string) ([]File, error) {
	out, err := run(ctx, command{dir: root, args: []string{"git", "ls-files", "-z", "go.mod", "*/go.mod"}})
	if err != nil {
		return nil, err
	}
	var files []File
	for path := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if strings.Contains(path, "testdata/") {
			continue
		}
		f := File{Path: path}
		f.Pins, f.Err = pins(ctx, filepath.Join(root, filepath.Dir(path)))
		files = append(files, f)
	}
	return files, nil
}

// selected is what `go list -m -json` says of a module.
type selected struct {
	Path, Version string
	Main          bool
	Replace       *struct{ Path, Version string }
}

func pins(ctx context.Context, dir string) ([]Pin, error) {
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	out, err := goCommand(ctx, dir, nil, "list", "-mod=readonly", "-m", "-json=Path,Version,Main,Replace", "all")
	if err != nil {
		return nil, err
	}
	checked := checksums(string(sums))
	var list []Pin
	for m, err := range decode[selected](out) {
		if err != nil {
			return nil, err
		}
		pin := Pin{m.Path, m.Version}
		if m.Replace != nil {
			// A folder takes its place, and needs no download: it has no version.
			pin = Pin{m.Replace.Path, m.Replace.Version}
		}
		if !m.Main && checked[pin] {
			list = append(list, pin)
		}
	}
	return list, nil
}

// checksums are the versions whose contents go.sum knows; lines for a go.mod alone are left out.
func checksums(sums string) map[Pin]bool {
	found := map[Pin]bool{}
	for line := range strings.Lines(sums) {
		if f := strings.Fields(line); len(f) == 3 && !strings.HasSuffix(f[1], "/go.mod") {
			found[Pin{f[0], f[1]}] = true
		}
	}
	return found
}

// decode reads JSON values that follow each other, as the go command prints them.
func decode[T any](data []byte) func(yield func(T, error) bool) {
	return func(yield func(T, error) bool) {
		for decoder := json.NewDecoder(bytes.NewReader(data)); ; {
			var value T
			err := decoder.Decode(&value)
			if errors.Is(err, io.EOF) || !yield(value, err) || err != nil {
				return
			}
		}
	}
}

// unique are the pins of all files, in order.
func unique(files []File) []Pin {
	var list []Pin
	for _, f := range files {
		list = append(list, f.Pins...)
	}
	slices.SortFunc(list, func(a, b Pin) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(list)
}
