package hosttest

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"wmco/applier"
	"wmco/applier/hosttest/simulation"
	"wmco/bundle"
)

// node is a file or folder; hard links are names of one node. Its data is replaced, never changed in place.
type node struct {
	kind     applier.FileKind
	access   bundle.Access
	data     []byte
	modified time.Time
	id       string
}

// name is an entry of a folder: what stands there, and its name in the case in which it was made.
type name struct {
	base string
	*node
}

// parent is the folder of a path, without a backslash at the end of the drive.
func parent(path string) string {
	return strings.TrimSuffix(bundle.Dir(path), `\`)
}

// Stat implements applier.Reader.
func (m *Memory) Stat(ctx context.Context, paths []string) ([]applier.FileInfo, error) {
	var infos []applier.FileInfo
	err := m.look(ctx, paths, func() error {
		for _, path := range paths {
			infos = append(infos, m.info(path))
		}
		return nil
	})
	return infos, err
}

func (m *Memory) info(path string) applier.FileInfo {
	n, ok := m.names[bundle.FoldPath(path)]
	if !ok {
		return applier.FileInfo{Path: path}
	}
	// In local time, as package os gives it.
	return applier.FileInfo{
		Path: path, Kind: n.kind, Size: int64(len(n.data)), Modified: n.modified.Local(), ID: n.id, Access: n.access,
	}
}

// List implements applier.Reader.
func (m *Memory) List(ctx context.Context, directory string) ([]applier.FileInfo, error) {
	var infos []applier.FileInfo
	err := m.look(ctx, []string{directory}, func() error {
		for _, folded := range m.below(directory) {
			infos = append(infos, m.info(directory+`\`+m.names[folded].base))
		}
		return nil
	})
	return infos, err
}

// below are the folded paths of what stands in a folder, sorted.
func (m *Memory) below(directory string) []string {
	top := bundle.FoldPath(directory)
	if n, ok := m.names[top]; !ok || n.kind != applier.FileDirectory {
		return nil
	}
	var all []string
	for folded := range m.names {
		if parent(folded) == top {
			all = append(all, folded)
		}
	}
	slices.SortFunc(all, cmp.Compare)
	return all
}

// Open implements applier.Reader.
func (m *Memory) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	var content io.ReadCloser
	err := m.look(ctx, []string{path}, func() error {
		n, ok := m.names[bundle.FoldPath(path)]
		switch {
		case !ok:
			return &applier.FileError{Path: path, Reason: applier.FileBroken, Err: simulation.ErrFileNotFound}
		case n.kind != applier.FileRegular:
			return &applier.FileError{Path: path, Reason: applier.FileDenied, Err: simulation.ErrAccessDenied}
		case m.state.Script.Locks(path):
			return &applier.FileError{Path: path, Reason: applier.FileLocked, Err: simulation.ErrSharingViolation}
		}
		content = io.NopCloser(bytes.NewReader(n.data))
		return nil
	})
	return content, err
}

func (m *Memory) look(ctx context.Context, paths []string, read func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cut {
		return ErrCut
	}
	if err := check(ctx, paths); err != nil {
		return err
	}
	return read()
}

func check(ctx context.Context, paths []string) error {
	for _, path := range paths {
		if err := simulation.CheckPath(path); err != nil {
			return err
		}
	}
	return ctx.Err()
}
