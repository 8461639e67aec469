// Package store reads a folder of executables that `make payload` built. It returns only contents that match the
// folder's list. It never writes to the folder and never holds a whole executable in memory.
//
//	payload.json       every executable: digest and size, raw and stored; module, version, release of Go
//	<name>.exe.zst     the executable, compressed
//
//	Open   checks the list and the files' names and sizes      Verify   checks every byte
//	Stored, Raw   a compressed or raw stream, which ends with an error if it does not match the list
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wmco/payload"
)

// Store is a folder of executables.
type Store struct {
	dir  string
	list List
}

// maxList is the largest size of a list, in bytes.
const maxList = 1 << 20

const buildAgain = "build it again: make payload"

// Open reads the list and checks that the folder has exactly its files, with their sizes. A folder that does not match
// is a *RefusedError. Contents are checked when they are read, or by Verify.
func Open(dir string) (*Store, error) {
	list, err := readList(dir)
	if err != nil {
		return nil, &RefusedError{Dir: dir, Problems: []Problem{{Path: filepath.Join(dir, ListFile), Message: err.Error(), Fix: buildAgain}}}
	}
	s := &Store{dir: dir, list: list}
	problems, err := s.files()
	if err != nil {
		return nil, err
	}
	return s, refused(dir, problems)
}

func readList(dir string) (List, error) {
	file, err := os.Open(filepath.Join(dir, ListFile))
	if errors.Is(err, os.ErrNotExist) {
		return List{}, errors.New("is missing: make payload did not build this folder")
	}
	if err != nil {
		return List{}, err
	}
	defer file.Close() //nolint:errcheck // only read from
	data, err := io.ReadAll(io.LimitReader(file, maxList+1))
	if err != nil {
		return List{}, err
	}
	if len(data) > maxList {
		return List{}, fmt.Errorf("is larger than %d bytes", maxList)
	}
	return Decode(data)
}

// files compares the folder with the list.
func (s *Store) files() ([]Problem, error) {
	var problems []Problem
	add := func(name, message, fix string) {
		problems = append(problems, Problem{Path: filepath.Join(s.dir, name), Message: message, Fix: fix})
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("reading payload %q: %w", s.dir, err)
	}
	for _, f := range entries {
		listed := f.Name() == ListFile || slices.ContainsFunc(s.list.Executables, func(e Entry) bool { return e.File() == f.Name() })
		if !listed {
			add(f.Name(), "is not in "+ListFile, "remove it, or build the payload again: make payload")
		}
	}
	for _, e := range s.list.Executables {
		info, err := os.Lstat(filepath.Join(s.dir, e.File()))
		switch {
		case errors.Is(err, os.ErrNotExist):
			add(e.File(), "is missing", buildAgain)
		case err != nil:
			return nil, fmt.Errorf("reading payload %q: %w", s.dir, err)
		case !info.Mode().IsRegular():
			add(e.File(), "is not a file", buildAgain)
		case info.Size() != e.Stored.Size:
			add(e.File(), fmt.Sprintf("has %d bytes, %s lists %d", info.Size(), ListFile, e.Stored.Size), buildAgain)
		}
	}
	return problems, nil
}

// Entries returns the executables, sorted by name.
func (s *Store) Entries() []Entry { return slices.Clone(s.list.Executables) }

// Set returns the payload as an input of render.
func (s *Store) Set() payload.Set {
	set := payload.Set{Source: s.dir}
	for _, e := range s.list.Executables {
		set.Built = append(set.Built, payload.Built{Name: e.Name, Version: e.Version, Digest: e.Raw.Digest, Size: e.Raw.Size, Stored: e.Stored})
	}
	return set
}

// errUnknown is the error for a name that the folder does not have.
var errUnknown = errors.New("no such executable")

func (s *Store) find(name string) (Entry, error) {
	i := slices.IndexFunc(s.list.Executables, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{}, fmt.Errorf("reading payload %q: %q: %w", s.dir, name, errUnknown)
	}
	return s.list.Executables[i], nil
}

// Verify reads every executable to its end. A *RefusedError has the problems of all of them.
func (s *Store) Verify(ctx context.Context) error {
	var problems []Problem
	for _, e := range s.list.Executables {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.verify(e); err != nil {
			problems = append(problems, Problem{Path: filepath.Join(s.dir, e.File()), Message: err.Error(), Fix: buildAgain})
		}
	}
	return refused(s.dir, problems)
}

// verify reads the stored bytes once and checks both them and the raw content.
func (s *Store) verify(e Entry) error {
	c, err := s.open(e)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // only read from
	stored := checked(c, e.Stored)
	raw, err := decompress(stored, e.Raw)
	if err != nil {
		return err
	}
	defer raw.Close() //nolint:errcheck // only read from
	if _, err := io.Copy(io.Discard, raw); err != nil {
		return err
	}
	// There may be data after the last frame.
	_, err = io.Copy(io.Discard, stored)
	return err
}

// Read opens a folder, verifies every byte and returns it as an input of render. A folder that does not match its list
// is a *RefusedError.
func Read(ctx context.Context, dir string) (payload.Set, error) {
	s, err := Open(dir)
	if err != nil {
		return payload.Set{}, err
	}
	if err := s.Verify(ctx); err != nil {
		return payload.Set{}, err
	}
	return s.Set(), nil
}

// RefusedError is the error for a folder that does not match its list.
type RefusedError struct {
	Dir      string
	Problems []Problem
}

// Problem is one difference from the list and how to fix it.
type Problem struct{ Path, Message, Fix string }

func refused(dir string, problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &RefusedError{Dir: dir, Problems: problems}
}

func (r *RefusedError) Error() string {
	lines := []string{fmt.Sprintf("payload %q is refused:", r.Dir)}
	for _, p := range r.Problems {
		lines = append(lines, fmt.Sprintf("%s: %s; %s", p.Path, p.Message, p.Fix))
	}
	return strings.Join(lines, "\n  ")
}
