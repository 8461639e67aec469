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

// state is the state of a pin at the module proxy.
type state string

// The states of a pin.
const (
	// pinListed: served and listed by the proxy.
	pinListed state = "listed"
	// pinUnlisted: served but not listed. A proxy that serves a subset may stop serving it.
	pinUnlisted state = "served, not listed"
	// pinNotServed: cannot be downloaded.
	pinNotServed state = "not served"
)

// pin is one version of one module.
type pin struct{ Module, Version string }

// String returns the pin as the go command writes it.
func (p pin) String() string { return p.Module + "@" + p.Version }

// file is a go.mod and its pins.
type file struct {
	// Path is the path of the go.mod.
	Path string
	Pins []pin
	// Err is the reason why the pins are not known, such as a version whose go.mod is not served.
	Err error
}

// readFiles returns every go.mod below root that git tracks, except test data, with its pins: the selected versions whose
// contents have a checksum in go.sum.
func readFiles(ctx context.Context, root string) ([]file, error) {
	out, err := run(ctx, command{dir: root, args: []string{"git", "ls-files", "-z", "go.mod", "*/go.mod"}})
	if err != nil {
		return nil, err
	}
	var files []file
	for path := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if strings.Contains(path, "testdata/") {
			continue
		}
		f := file{Path: path}
		f.Pins, f.Err = pins(ctx, filepath.Join(root, filepath.Dir(path)))
		files = append(files, f)
	}
	return files, nil
}

// selected is a module in the output of `go list -m -json`.
type selected struct {
	Path, Version string
	Main          bool
	Replace       *struct{ Path, Version string }
}

func pins(ctx context.Context, dir string) ([]pin, error) {
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	out, err := goCommand(ctx, dir, nil, "list", "-mod=readonly", "-m", "-json=Path,Version,Main,Replace", "all")
	if err != nil {
		return nil, err
	}
	checked := checksums(string(sums))
	var list []pin
	for m, err := range decode[selected](out) {
		if err != nil {
			return nil, err
		}
		p := pin{m.Path, m.Version}
		if m.Replace != nil {
			// A folder that replaces a module has no version and needs no download.
			p = pin{m.Replace.Path, m.Replace.Version}
		}
		if !m.Main && checked[p] {
			list = append(list, p)
		}
	}
	return list, nil
}

// checksums returns the versions whose contents have a checksum in go.sum, without those that have one for go.mod only.
func checksums(sums string) map[pin]bool {
	found := map[pin]bool{}
	for line := range strings.Lines(sums) {
		if f := strings.Fields(line); len(f) == 3 && !strings.HasSuffix(f[1], "/go.mod") {
			found[pin{f[0], f[1]}] = true
		}
	}
	return found
}

// decode yields a sequence of JSON values, as the go command prints them.
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

// unique returns the pins of all files, sorted and without duplicates.
func unique(files []file) []pin {
	var list []pin
	for _, f := range files {
		list = append(list, f.Pins...)
	}
	slices.SortFunc(list, func(a, b pin) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(list)
}
