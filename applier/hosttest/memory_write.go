package hosttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"wmco/applier"
	"wmco/applier/hosttest/simulation"
	"wmco/bundle"
)

// change begins an operation on files, the first of which it is named after.
func (m *Memory) change(ctx context.Context, verb simulation.Verb, paths []string, do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	op := simulation.Operation{Verb: verb, Target: paths[0]}
	if err := check(ctx, paths); err != nil {
		return err
	}
	if err := m.begin(op); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return m.end(op)
}

// effect is a step.
func (m *Memory) effect(do func()) error {
	if err := m.step(); err != nil {
		return err
	}
	do()
	return nil
}

// Write implements applier.Writer.
func (m *Memory) Write(ctx context.Context, path string, access bundle.Access, content io.Reader) error {
	data, failed := io.ReadAll(content)
	return m.change(ctx, simulation.VerbWrite, []string{path}, func() error {
		if failed != nil {
			return fmt.Errorf("writing %s: %w", path, failed)
		}
		if err := m.refuses(path, applier.FileRegular); err != nil {
			return err
		}
		if m.Faults.DiskBytes > 0 && m.used()+int64(len(data)) > m.Faults.DiskBytes {
			return &applier.FileError{Path: path, Reason: applier.FileDiskFull, Err: simulation.ErrDiskFull}
		}
		return m.replace(ctx, path, m.file(access, data))
	})
}

// replace lets a file take a path, as hosts do it: half of it is written, then all, under another name.
func (m *Memory) replace(ctx context.Context, path string, whole *node) error {
	half := *whole
	half.data = whole.data[:len(whole.data)/2]
	if err := m.clear(applier.NewName(path)); err != nil {
		return err
	}
	if err := m.effect(func() { m.put(applier.NewName(path), &half) }); err != nil {
		return err
	}
	return m.takePlace(ctx, path, whole)
}

// takePlace gives a node a name beside the path and lets it take that. What a failure leaves is removed; a cut leaves it.
func (m *Memory) takePlace(ctx context.Context, path string, n *node) error {
	beside, spelled := applier.NewName(path), path
	if old, ok := m.names[bundle.FoldPath(path)]; ok {
		spelled = parent(path) + `\` + old.base
	}
	err := m.clear(beside)
	if err == nil {
		err = m.effect(func() { m.put(beside, n) })
	}
	if err == nil {
		err = m.asideIfRunning(ctx, path)
	}
	if err == nil {
		err = m.effect(func() { m.move(beside, spelled) })
	}
	if err != nil && !m.cut && len(m.below(beside)) == 0 {
		delete(m.names, bundle.FoldPath(beside))
	}
	return err
}

// clear tells whether what a cut left at path can be replaced.
func (m *Memory) clear(path string) error {
	if len(m.below(path)) > 0 {
		return &applier.FileError{Path: path, Reason: applier.FileBroken, Err: simulation.ErrDirNotEmpty}
	}
	return nil
}

// asideIfRunning moves a program that runs out of the way.
func (m *Memory) asideIfRunning(ctx context.Context, path string) error {
	n, ok := m.names[bundle.FoldPath(path)]
	if !ok {
		return nil
	}
	if runs, err := m.Runs(ctx, n.id); err != nil || !runs {
		return err
	}
	aside, err := simulation.FreeAside(path, func(path string) (bool, error) { return m.has(path), nil })
	if err != nil {
		return err
	}
	return m.effect(func() { m.move(path, aside) })
}

// refuses tells why nothing of a kind can be made at path.
func (m *Memory) refuses(path string, kind applier.FileKind) error {
	if err := m.state.Script.Refuses(path); err != nil {
		return err
	}
	above, ok := m.names[bundle.FoldPath(parent(path))]
	if parent(path) != simulation.Drive[:2] && (!ok || above.kind != applier.FileDirectory) {
		return &applier.FileError{Path: path, Reason: applier.FileBroken, Err: simulation.ErrFileNotFound}
	}
	if n, ok := m.names[bundle.FoldPath(path)]; ok && n.kind != kind {
		return &applier.FileError{Path: path, Reason: applier.FileBroken, Err: simulation.ErrAlreadyExists}
	}
	return nil
}

// MakeDirectory implements applier.Writer.
func (m *Memory) MakeDirectory(ctx context.Context, path string, access bundle.Access) error {
	return m.change(ctx, simulation.VerbMake, []string{path}, func() error {
		if err := m.refuses(path, applier.FileDirectory); err != nil {
			return err
		}
		return m.effect(func() {
			n, ok := m.names[bundle.FoldPath(path)]
			if !ok {
				m.put(path, m.newNode(applier.FileDirectory, access))
				return
			}
			n.access = access
		})
	})
}

// Link implements applier.Writer.
func (m *Memory) Link(ctx context.Context, path, second string) error {
	return m.change(ctx, simulation.VerbLink, []string{path, second}, func() error {
		n, ok := m.names[bundle.FoldPath(path)]
		if !ok || n.kind != applier.FileRegular {
			return &applier.FileError{Path: path, Reason: applier.FileBroken, Err: simulation.ErrFileNotFound}
		}
		if err := errors.Join(simulation.CheckOther(path, second), m.refuses(second, applier.FileRegular)); err != nil {
			return err
		}
		if m.has(second) && m.names[bundle.FoldPath(second)].node == n.node {
			return nil
		}
		return m.takePlace(ctx, second, n.node)
	})
}

// Remove implements applier.Writer.
func (m *Memory) Remove(ctx context.Context, path string) error {
	return m.change(ctx, simulation.VerbRemove, []string{path}, func() error {
		n, ok := m.names[bundle.FoldPath(path)]
		if !ok {
			return nil
		}
		if err := m.state.Script.RefusesRemoval(path); err != nil {
			return err
		}
		if len(m.below(path)) > 0 {
			return &applier.FileError{Path: path, Reason: applier.FileBroken, Err: simulation.ErrDirNotEmpty}
		}
		runs, err := m.Runs(ctx, n.id)
		switch {
		case err != nil:
			return err
		case runs && applier.Leftover(path):
			return &applier.FileError{Path: path, Reason: applier.FileLocked, Err: simulation.ErrAccessDenied}
		case runs:
			return m.asideIfRunning(ctx, path)
		}
		return m.effect(func() { delete(m.names, bundle.FoldPath(path)) })
	})
}

// CopyTruncate implements applier.Writer. The copy has the access of the file.
func (m *Memory) CopyTruncate(ctx context.Context, path, to string) error {
	return m.change(ctx, simulation.VerbTruncate, []string{path, to}, func() error {
		n, ok := m.names[bundle.FoldPath(path)]
		if !ok || n.kind != applier.FileRegular {
			return &applier.FileError{Path: path, Reason: applier.FileBroken, Err: simulation.ErrFileNotFound}
		}
		if err := errors.Join(simulation.CheckOther(path, to), m.refuses(to, applier.FileRegular)); err != nil {
			return err
		}
		if err := m.replace(ctx, to, m.file(n.access, n.data)); err != nil {
			return err
		}
		return m.effect(func() { n.data, n.modified = nil, m.Now() })
	})
}

func (m *Memory) newNode(kind applier.FileKind, access bundle.Access) *node {
	m.serial++
	return &node{kind: kind, access: access, modified: m.Now(), id: strconv.Itoa(m.serial)}
}

func (m *Memory) file(access bundle.Access, data []byte) *node {
	n := m.newNode(applier.FileRegular, access)
	n.data = data
	return n
}

func (m *Memory) has(path string) bool {
	_, ok := m.names[bundle.FoldPath(path)]
	return ok
}

// put gives a node a name. One that is there keeps its case.
func (m *Memory) put(path string, n *node) {
	entry, ok := m.names[bundle.FoldPath(path)]
	if !ok {
		entry.base = bundle.Base(path)
	}
	entry.node = n
	m.names[bundle.FoldPath(path)] = entry
}

func (m *Memory) move(from, to string) {
	m.put(to, m.names[bundle.FoldPath(from)].node)
	delete(m.names, bundle.FoldPath(from))
}
