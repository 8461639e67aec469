package folderhost

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"wmco/applier"
	"wmco/applier/hosttest/simulation"
	"wmco/bundle"
)

// Write implements applier.Writer.
func (h *Host) Write(ctx context.Context, name string, access bundle.Access, content io.Reader) error {
	p, err := h.writable(ctx, name, applier.FileRegular)
	if err != nil {
		return err
	}
	return fileError(name, h.replace(ctx, name, p, fileModes[access], content))
}

// writable finds a path at which something of a kind may be made.
func (h *Host) writable(ctx context.Context, name string, kind applier.FileKind) (place, error) {
	p, err := h.findOne(ctx, name)
	if err != nil {
		return p, err
	}
	script, err := h.script(ctx)
	if err == nil {
		err = script.Refuses(name)
	}
	switch {
	case err != nil:
		return p, err
	case p.rel == "":
		return p, &applier.FileError{Path: name, Reason: applier.FileBroken, Err: simulation.ErrFileNotFound}
	case p.info != nil && p.kind() != kind:
		return p, &applier.FileError{Path: name, Reason: applier.FileBroken, Err: simulation.ErrAlreadyExists}
	}
	return p, nil
}

// replace writes a file beside p and lets it take the place.
func (h *Host) replace(ctx context.Context, name string, p place, mode fs.FileMode, content io.Reader) error {
	beside, err := h.beside(name)
	if err != nil {
		return err
	}
	if err := h.fill(beside, mode, content); err != nil {
		return errors.Join(err, h.discard(beside))
	}
	if err := h.keepRunning(ctx, name, p); err != nil {
		return errors.Join(err, h.discard(beside))
	}
	if err := h.tree.Rename(beside, p.rel); err != nil {
		return errors.Join(err, h.discard(beside))
	}
	return h.sync(path.Dir(p.rel))
}

// beside clears the place of a file that is to take the place of name.
func (h *Host) beside(name string) (string, error) {
	p, err := findOne(h.tree, applier.NewName(name))
	if err != nil {
		return "", err
	}
	return p.rel, h.discard(p.rel)
}

// fill makes a file that nobody else may read until it has its access, and flushes it to the disk.
func (h *Host) fill(rel string, mode fs.FileMode, content io.Reader) error {
	f, err := h.tree.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return errors.Join(err, f.Close())
	}
	source := &source{Reader: content}
	if _, err := io.Copy(f, source); err != nil {
		return errors.Join(err, source.failed(), f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

// keepRunning gives a program that runs a name aside before another file takes its own. Windows would move it there.
func (h *Host) keepRunning(ctx context.Context, name string, p place) error {
	runs, err := h.runs(ctx, p)
	if err != nil || !runs {
		return err
	}
	aside, err := h.aside(name)
	if err != nil {
		return err
	}
	return h.tree.Link(p.rel, aside)
}

func (h *Host) runs(ctx context.Context, p place) (bool, error) {
	if p.kind() != applier.FileRegular {
		return false, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.Runs(ctx, fileID(p.info))
}

// aside is where a program that runs can stand.
func (h *Host) aside(name string) (string, error) {
	r := newResolver(h.tree)
	defer r.close()
	free, err := simulation.FreeAside(name, func(name string) (bool, error) {
		p, err := r.find(name)
		return p.info != nil, err
	})
	if err != nil {
		return "", err
	}
	p, err := r.find(free)
	return p.rel, err
}

// MakeDirectory implements applier.Writer.
func (h *Host) MakeDirectory(ctx context.Context, name string, access bundle.Access) error {
	p, err := h.writable(ctx, name, applier.FileDirectory)
	if err != nil {
		return err
	}
	if p.info == nil {
		if err := h.tree.Mkdir(p.rel, 0o700); err != nil {
			return fileError(name, err)
		}
	}
	if err := h.tree.Chmod(p.rel, folderModes[access]); err != nil {
		return fileError(name, err)
	}
	return fileError(name, h.sync(path.Dir(p.rel)))
}

// Link implements applier.Writer.
func (h *Host) Link(ctx context.Context, name, second string) error {
	p, err := h.findOne(ctx, name)
	if err != nil {
		return err
	}
	if p.kind() != applier.FileRegular {
		return &applier.FileError{Path: name, Reason: applier.FileBroken, Err: simulation.ErrFileNotFound}
	}
	q, err := h.writable(ctx, second, applier.FileRegular)
	if err = errors.Join(simulation.CheckOther(name, second), err); err != nil {
		return err
	}
	// A rename between two names of one file does nothing, not even away with the first.
	if q.info != nil && os.SameFile(p.info, q.info) {
		return nil
	}
	return fileError(second, h.link(ctx, p, second, q))
}

func (h *Host) link(ctx context.Context, p place, second string, q place) error {
	if err := h.keepRunning(ctx, second, q); err != nil {
		return err
	}
	beside, err := h.beside(second)
	if err != nil {
		return err
	}
	if err := h.tree.Link(p.rel, beside); err != nil {
		return err
	}
	if err := h.tree.Rename(beside, q.rel); err != nil {
		return errors.Join(err, h.discard(beside))
	}
	return h.sync(path.Dir(q.rel))
}

// Remove implements applier.Writer.
func (h *Host) Remove(ctx context.Context, name string) error {
	p, err := h.findOne(ctx, name)
	if err != nil || p.info == nil {
		return err
	}
	script, err := h.script(ctx)
	if err == nil {
		err = script.RefusesRemoval(name)
	}
	if err != nil {
		return err
	}
	runs, err := h.runs(ctx, p)
	switch {
	case err != nil:
		return err
	case runs && applier.Leftover(name):
		return &applier.FileError{Path: name, Reason: applier.FileLocked, Err: simulation.ErrAccessDenied}
	case runs:
		err = h.moveAside(name, p)
	default:
		err = h.tree.Remove(p.rel)
	}
	return fileError(name, errors.Join(err, h.sync(path.Dir(p.rel))))
}

func (h *Host) moveAside(name string, p place) error {
	aside, err := h.aside(name)
	if err != nil {
		return err
	}
	return h.tree.Rename(p.rel, aside)
}

// CopyTruncate implements applier.Writer. The copy has the access of the file.
func (h *Host) CopyTruncate(ctx context.Context, name, to string) error {
	p, err := h.findOne(ctx, name)
	if err != nil {
		return err
	}
	if p.kind() != applier.FileRegular {
		return &applier.FileError{Path: name, Reason: applier.FileBroken, Err: simulation.ErrFileNotFound}
	}
	q, err := h.writable(ctx, to, applier.FileRegular)
	if err = errors.Join(simulation.CheckOther(name, to), err); err != nil {
		return err
	}
	f, err := h.tree.OpenFile(p.rel, os.O_RDWR, 0)
	if err != nil {
		return fileError(name, err)
	}
	err = h.replace(ctx, to, q, p.info.Mode().Perm(), f)
	if err == nil {
		err = errors.Join(f.Truncate(0), f.Sync())
	}
	return fileError(name, errors.Join(err, f.Close()))
}

// discard removes what a cut may have left.
func (h *Host) discard(rel string) error {
	if err := h.tree.Remove(rel); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sync flushes the names in a folder to the disk.
func (h *Host) sync(rel string) error { return syncFolder(h.tree, rel) }
