package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
)

// Stat implements applier.Reader.
func (h *Host) Stat(ctx context.Context, paths []string) ([]plan.FileInfo, error) {
	if err := check(ctx, paths...); err != nil {
		return nil, err
	}
	return h.Storage.Files.Stat(paths)
}

// List implements applier.Reader.
func (h *Host) List(ctx context.Context, directory string) ([]plan.FileInfo, error) {
	if err := check(ctx, directory); err != nil {
		return nil, err
	}
	infos, err := h.Storage.Files.List(directory)
	return infos, FileError(directory, err)
}

// Open implements applier.Reader.
func (h *Host) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	if err := check(ctx, path); err != nil {
		return nil, err
	}
	info, err := statOne(h.Storage.Files, path)
	if err != nil {
		return nil, FileError(path, err)
	}
	switch info.Kind {
	case plan.FileAbsent:
		return nil, FileError(path, ErrFileNotFound)
	case plan.FileDirectory, plan.FileOther:
		return nil, FileError(path, ErrAccessDenied)
	case plan.FileRegular:
	}
	s, err := h.state(ctx)
	if err == nil && s.Script.Locks(path) {
		err = ErrSharingViolation
	}
	if err != nil {
		return nil, FileError(path, err)
	}
	f, err := h.Storage.Files.Open(path)
	return f, FileError(path, err)
}

// Write implements applier.Writer.
func (h *Host) Write(ctx context.Context, path string, access bundle.Access, content io.Reader) error {
	return h.changeFiles(ctx, VerbWrite, []string{path}, func(s *State) error {
		if _, err := h.target(s, path, plan.FileRegular); err != nil {
			return err
		}
		return h.replace(ctx, s, newFile{path, access, content})
	})
}

// CheckLock returns why the host is not locked, as applier.Host documents it: the folder of the lock is not trusted.
func (h *Host) CheckLock() error {
	info, err := statOne(h.Storage.Files, plan.StateFolder)
	if err == nil && !info.IsTrusted() {
		err = ErrAccessDenied
	}
	return FileError(plan.StateFolder, err)
}

// MakeDirectory implements applier.Writer.
func (h *Host) MakeDirectory(ctx context.Context, path string, access bundle.Access) error {
	return h.changeFiles(ctx, VerbMake, []string{path}, func(s *State) error {
		if _, err := h.target(s, path, plan.FileDirectory); err != nil {
			return err
		}
		return FileError(path, h.Storage.Files.MakeFolder(path, access))
	})
}

// Link implements applier.Writer.
func (h *Host) Link(ctx context.Context, path, second string) error {
	return h.changeFiles(ctx, VerbLink, []string{path, second}, func(s *State) error {
		file, there, err := h.pair(s, path, second)
		if err != nil || file.ID == there.ID {
			return err
		}
		return h.place(ctx, second, func(beside string) error { return h.Storage.Files.Link(path, beside) })
	})
}

// CopyTruncate implements applier.Writer. The copy has the access of the file.
func (h *Host) CopyTruncate(ctx context.Context, path, to string) error {
	return h.changeFiles(ctx, VerbTruncate, []string{path, to}, func(s *State) error {
		file, _, err := h.pair(s, path, to)
		// A copy of a file to itself would be emptied with it.
		if err != nil || bundle.FoldPath(path) == bundle.FoldPath(to) {
			return err
		}
		content, err := h.Storage.Files.Open(path)
		if err != nil {
			return FileError(path, err)
		}
		if err := errors.Join(h.replace(ctx, s, newFile{to, file.Access, content}), content.Close()); err != nil {
			return err
		}
		return FileError(path, h.Storage.Files.Truncate(path))
	})
}

// Move implements applier.Writer.
func (h *Host) Move(ctx context.Context, path, to string) error {
	return h.changeFiles(ctx, VerbMove, []string{path, to}, func(s *State) error {
		infos, err := h.Storage.Files.Stat([]string{path, to, bundle.Dir(to)})
		switch {
		case err != nil:
		case infos[0].Kind == plan.FileAbsent || infos[2].Kind != plan.FileDirectory:
			err = ErrFileNotFound
		case infos[1].Kind != plan.FileAbsent:
			err = ErrAlreadyExists
		case strings.HasPrefix(bundle.FoldPath(to), bundle.FoldPath(path)+`\`):
			err = ErrSharingViolation
		default:
			err = h.movable(s, infos[0])
		}
		if err != nil {
			return FileError(path, err)
		}
		return FileError(path, h.Storage.Files.Move(path, to))
	})
}

// movable returns why Windows does not move something: a program runs in it, or has a file in it open.
func (h *Host) movable(s *State, info plan.FileInfo) error {
	if err := s.Script.RefusesRemoval(info.Path); err != nil {
		return err
	}
	if info.Kind == plan.FileRegular && s.runs(info.ID) {
		return ErrAccessDenied
	}
	if info.Kind != plan.FileDirectory {
		return nil
	}
	inside, err := h.Storage.Files.List(info.Path)
	for _, f := range inside {
		if h.movable(s, f) != nil {
			return ErrAccessDenied
		}
	}
	return err
}

// Remove implements applier.Writer.
func (h *Host) Remove(ctx context.Context, path string) error {
	return h.changeFiles(ctx, VerbRemove, []string{path}, func(s *State) error {
		info, err := statOne(h.Storage.Files, path)
		if err != nil || info.Kind == plan.FileAbsent {
			return FileError(path, err)
		}
		runs := info.Kind == plan.FileRegular && s.runs(info.ID)
		err = s.Script.RefusesRemoval(path)
		switch {
		case err != nil:
			return err
		case runs && plan.IsLeftover(path):
			return &applier.FileError{Path: path, Reason: applier.FileLocked, Err: ErrAccessDenied}
		case runs:
			return FileError(path, h.moveAside(path))
		}
		return FileError(path, h.remove(info))
	})
}

// changeFiles does an operation on files, which is named after the first of the paths.
func (h *Host) changeFiles(ctx context.Context, verb Verb, paths []string, do func(*State) error) error {
	if err := check(ctx, paths...); err != nil {
		return err
	}
	return h.operate(Operation{verb, paths[0]}, func() error {
		s, err := h.state(ctx)
		if err != nil {
			return err
		}
		return do(s)
	})
}

// state returns the state as it is now.
func (h *Host) state(ctx context.Context) (*State, error) {
	var now *State
	err := h.Look(ctx, func(s *State) { now = s })
	return now, err
}

// target returns the entry at a path at which something of a kind is to be made, or why it cannot be made there.
func (h *Host) target(s *State, path string, kind plan.FileKind) (plan.FileInfo, error) {
	if err := s.Script.Refuses(path); err != nil {
		return plan.FileInfo{}, err
	}
	infos, err := h.Storage.Files.Stat([]string{bundle.Dir(path), path})
	switch {
	case err != nil:
	case infos[0].Kind != plan.FileDirectory:
		err = ErrFileNotFound
	case infos[1].Kind != plan.FileAbsent && infos[1].Kind != kind:
		err = ErrAlreadyExists
	}
	if err != nil {
		return plan.FileInfo{}, FileError(path, err)
	}
	return infos[1], nil
}

// pair returns a file and the entry at a second path, which is to become a copy or a name of the file.
func (h *Host) pair(s *State, path, second string) (file, there plan.FileInfo, err error) {
	file, err = statOne(h.Storage.Files, path)
	switch {
	case err != nil:
	case file.Kind != plan.FileRegular:
		err = ErrFileNotFound
	case bundle.FoldPath(path) == bundle.FoldPath(plan.NewName(second)):
		// The copy is made under the name that the file has.
		err = ErrSharingViolation
	}
	if err != nil {
		return file, there, FileError(path, err)
	}
	there, err = h.target(s, second, plan.FileRegular)
	return file, there, err
}

// newFile is a file that replaces the entry at its path.
type newFile struct {
	path    string
	access  bundle.Access
	content io.Reader
}

// replace puts a new file at a path. What an interrupted call left there makes room first.
func (h *Host) replace(ctx context.Context, s *State, f newFile) error {
	from := &source{Reader: f.content}
	err := h.place(ctx, f.path, func(beside string) error {
		left, err := h.free(s)
		if err != nil {
			return err
		}
		return h.Storage.Files.Create(beside, f.access, &limited{from, left})
	})
	if from.err != nil {
		return fmt.Errorf("writing %s: %w", f.path, from.err)
	}
	return err
}

// source remembers why contents broke off, which is no error of the host.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// place makes a file under plan.NewName and renames it to path. A program that runs there is moved aside first, as
// Windows refuses to replace it: a cut in between leaves nothing at path.
func (h *Host) place(ctx context.Context, path string, create func(beside string) error) error {
	beside := plan.NewName(path)
	err := h.discard(ctx, beside)
	if err != nil {
		return FileError(path, err)
	}
	if err = create(beside); err == nil {
		err = h.moveAsideIfRunning(ctx, path)
	}
	if err == nil {
		err = h.Storage.Files.Rename(beside, path)
	}
	if err == nil {
		return nil
	}
	if left := h.discard(ctx, beside); left != nil && !errors.Is(err, left) {
		err = errors.Join(err, left)
	}
	return FileError(path, err)
}

// discard removes what a cut or a failure left. Windows deletes no file of a program that runs, under whichever name:
// DeleteFile returns ERROR_ACCESS_DENIED (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-deletefilew). On a
// disk in a folder, the next file would get the ID of the deleted one, and count as the program that runs.
func (h *Host) discard(ctx context.Context, path string) error {
	info, err := statOne(h.Storage.Files, path)
	if err != nil || info.Kind == plan.FileAbsent {
		return err
	}
	s, err := h.state(ctx)
	switch {
	case err != nil:
		return err
	case info.Kind == plan.FileRegular && s.runs(info.ID):
		return ErrAccessDenied
	}
	return h.remove(info)
}

func (h *Host) remove(info plan.FileInfo) error {
	if info.Kind == plan.FileDirectory {
		if in, err := h.Storage.Files.List(info.Path); err != nil || len(in) > 0 {
			return errors.Join(err, ErrDirNotEmpty)
		}
	}
	return h.Storage.Files.Remove(info.Path)
}

func (h *Host) moveAsideIfRunning(ctx context.Context, path string) error {
	info, err := statOne(h.Storage.Files, path)
	if err != nil || info.Kind != plan.FileRegular {
		return err
	}
	s, err := h.state(ctx)
	if err != nil || !s.runs(info.ID) {
		return err
	}
	return h.moveAside(path)
}

// moveAside gives a program that runs the first of its applier.AsideNames that is free.
func (h *Host) moveAside(path string) error {
	for n := 1; ; n++ {
		aside := plan.AsideName(path, strconv.Itoa(n))
		info, err := statOne(h.Storage.Files, aside)
		if err != nil {
			return err
		}
		if info.Kind == plan.FileAbsent {
			return h.Storage.Files.Rename(path, aside)
		}
	}
}

func check(ctx context.Context, paths ...string) error {
	for _, path := range paths {
		if err := CheckPath(path); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// reasons are what Windows errors of files mean to an applier. All others are applier.FileBroken.
var reasons = map[SystemError]applier.FileReason{
	ErrDiskFull:         applier.FileDiskFull,
	ErrAccessDenied:     applier.FileDenied,
	ErrSharingViolation: applier.FileLocked,
}

// FileError returns the *applier.FileError of a Windows error. Other errors stay as they are.
func FileError(path string, err error) error {
	var known *applier.FileError
	var code SystemError
	if errors.As(err, &known) || !errors.As(err, &code) {
		return err
	}
	reason, ok := reasons[code]
	if !ok {
		reason = applier.FileBroken
	}
	return &applier.FileError{Path: path, Reason: reason, Err: err}
}
