package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"wmco/applier/plan"
	"wmco/bundle"
)

// Program is the executable of the node agent that hosts get. Its path depends on its content, so an upload never replaces an
// executable that is running.
type Program struct {
	// Path is where it lies on hosts, such as C:\k\agent\wmco-node-<digest12>.exe.
	Path   string
	Digest bundle.Digest
	// Size is in bytes.
	Size int64
	// Open opens it for one reader of many.
	Open func() (io.ReadCloser, error)
}

// FileProgram returns the program in a file. pathOf returns its path on hosts.
func FileProgram(file string, pathOf func(bundle.Digest) string) (Program, error) {
	f, err := os.Open(file)
	if err != nil {
		return Program{}, fmt.Errorf("reading the node agent: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return Program{}, fmt.Errorf("reading the node agent: %w", err)
	}
	digest := bundle.Digest("sha256:" + hex.EncodeToString(sum.Sum(nil)))
	open := func() (io.ReadCloser, error) { return os.Open(file) }
	return Program{Path: pathOf(digest), Digest: digest, Size: size, Open: open}, nil
}

// Files are the files of a host. Paths are those of SFTP on Windows, such as /C:/k. A file that does not exist is fs.ErrNotExist, one
// that may not be accessed fs.ErrPermission.
type Files interface {
	ReadDir(path string) ([]fs.FileInfo, error)
	// MkdirAll makes a folder and those above it.
	MkdirAll(path string) error
	// Write creates the file and writes size bytes to it.
	Write(path string, from io.Reader, size int64) error
	// Replace renames a file. A file that has the new name is replaced.
	Replace(from, to string) error
	Remove(path string) error
}

// ErrNoSFTP says that the host transfers no files.
var ErrNoSFTP = errors.New("the host's SSH server does not offer SFTP")

// leftoverAge is how old a leftover of an interrupted upload must be before it is deleted. No upload takes that long. Both times are
// of the host's clock.
const leftoverAge = 6 * time.Hour

// provide makes sure that the host has the program, and reports whether it was uploaded for that.
func (a *Agent) provide(ctx context.Context) (uploaded bool, err error) {
	if a.client.leaves {
		return false, a.look(ctx)
	}
	return a.upload(ctx)
}

// look returns a *NotInstalledError if the host lacks the program.
func (a *Agent) look(ctx context.Context) error {
	program := a.client.program
	lacks := &NotInstalledError{Target: a.target, Path: program.Path}
	err := a.client.transport.Transfer(ctx, a.target, func(files Files) error {
		target := sftpPath(program.Path)
		entries, err := files.ReadDir(path.Dir(target))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("opening folder %s: %w", path.Dir(target), err)
		}
		if f := find(entries, target); f == nil || f.Size() != program.Size {
			return lacks
		}
		return nil
	})
	if errors.Is(err, ErrNoSFTP) || errors.Is(err, fs.ErrPermission) {
		lacks.Err = err
		return lacks
	}
	return err
}

// upload uploads the program, unless the host has it, and reports whether it did. An upload that fails is a *ProgramError.
func (a *Agent) upload(ctx context.Context) (done bool, err error) {
	err = a.client.transport.Transfer(ctx, a.target, func(files Files) error {
		u := upload{Files: files, program: a.client.program, target: sftpPath(a.client.program.Path)}
		if done, err = u.run(); err != nil {
			return a.programError(err, uploadFix(err))
		}
		return nil
	})
	if errors.Is(err, ErrNoSFTP) {
		err = a.programError(err, `check that C:\ProgramData\ssh\sshd_config on the host has the line "Subsystem sftp sftp-server.exe", and restart the service sshd; or copy the program there by hand`)
	}
	return done && err == nil, err
}

func (a *Agent) programError(err error, fix string) error {
	return &ProgramError{Target: a.target, Path: a.client.program.Path, Err: err, Todo: fix}
}

func uploadFix(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "connect as a member of Administrators, and check that no other account owns the folder"
	}
	return "check that drive C: of the host has room and that no scanner locks the file, and run it again"
}

// sftpPath returns the SFTP path of a Windows path (Win32-OpenSSH, sftp-server: /C:/k).
func sftpPath(path string) string { return "/" + strings.ReplaceAll(path, `\`, "/") }

// upload is one upload of the program.
type upload struct {
	Files
	program Program
	target  string
}

// run writes the program beside its target, and renames it when it is complete.
func (u upload) run() (done bool, err error) {
	folder := path.Dir(u.target)
	entries, err := u.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		err = u.MkdirAll(folder)
	}
	if err != nil {
		return false, fmt.Errorf("opening folder %s: %w", folder, err)
	}
	if f := find(entries, u.target); f != nil && f.Size() == u.program.Size {
		return false, nil
	}
	temporary, err := temporaryName(u.target)
	if err != nil {
		return false, err
	}
	entries, err = u.write(temporary)
	if err == nil {
		err = u.Replace(temporary, u.target)
	}
	if err != nil {
		_ = u.Remove(temporary) // where this fails, the next upload removes it
		return false, err
	}
	u.tidy(entries, find(entries, temporary).ModTime())
	return true, nil
}

// find returns the file at a path, nil if there is none. Windows ignores case.
func find(entries []fs.FileInfo, file string) fs.FileInfo {
	i := slices.IndexFunc(entries, func(f fs.FileInfo) bool { return strings.EqualFold(f.Name(), path.Base(file)) })
	if i < 0 {
		return nil
	}
	return entries[i]
}

// temporaryName returns a name that no other upload uses.
func temporaryName(target string) (string, error) {
	var serial [4]byte
	if _, err := rand.Read(serial[:]); err != nil {
		return "", err
	}
	return plan.NewName(target + "." + hex.EncodeToString(serial[:])), nil
}

// write writes the program and checks its size. It returns the files that are in the folder then.
func (u upload) write(name string) ([]fs.FileInfo, error) {
	from, err := u.program.Open()
	if err != nil {
		return nil, fmt.Errorf("reading the node agent: %w", err)
	}
	defer from.Close() //nolint:errcheck // only read from
	if err := u.Write(name, from, u.program.Size); err != nil {
		return nil, fmt.Errorf("writing %s: %w", name, err)
	}
	entries, err := u.ReadDir(path.Dir(name))
	if err != nil {
		return nil, fmt.Errorf("listing folder %s: %w", path.Dir(name), err)
	}
	switch f := find(entries, name); {
	case f == nil:
		return nil, fmt.Errorf("writing %s: the file is not there", name)
	case f.Size() != u.program.Size:
		return nil, fmt.Errorf("writing %s: it has %d bytes there, expected %d", name, f.Size(), u.program.Size)
	}
	return entries, nil
}

// tidy deletes older programs and leftovers of interrupted uploads. The newest older program stays, because the host's
// service may run it; Windows keeps any that runs. What cannot be deleted stays until the next upload.
func (u upload) tidy(entries []fs.FileInfo, now time.Time) {
	folder := path.Dir(u.target)
	var older []fs.FileInfo
	for _, e := range entries {
		switch {
		case plan.Leftover(e.Name()):
			if now.Sub(e.ModTime()) > leftoverAge {
				_ = u.Remove(path.Join(folder, e.Name()))
			}
		case e.Name() != path.Base(u.target) && isProgram(e.Name(), path.Base(u.target)):
			older = append(older, e)
		}
	}
	slices.SortFunc(older, func(a, b fs.FileInfo) int { return cmp.Compare(b.ModTime().UnixNano(), a.ModTime().UnixNano()) })
	for _, e := range older[min(1, len(older)):] {
		_ = u.Remove(path.Join(folder, e.Name()))
	}
}

// isProgram reports whether a name differs from the program's in nothing but the digest.
func isProgram(name, program string) bool {
	i := strings.LastIndexByte(program, '-')
	return i > 0 && len(name) == len(program) && strings.HasPrefix(name, program[:i+1]) && path.Ext(name) == path.Ext(program)
}
