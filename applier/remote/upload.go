package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"wmco/applier/ownfile"
	"wmco/bundle"
)

// ProgramPath returns where the program with a digest lies on hosts.
func ProgramPath(d bundle.Digest) string {
	return bundle.UploadFolder + `\wmco-node-` + d.Short() + `.exe`
}

// Program is the executable of the node agent that hosts get. Its path depends on its content, so an upload never
// replaces an executable that is running.
type Program struct {
	// Path is its ProgramPath.
	Path   string
	Digest bundle.Digest
	// Size is in bytes.
	Size int64
	// Open opens it for one reader of many.
	Open func() (io.ReadCloser, error)
	// Sum is its checksum (applier/ownfile). If it is empty, a client computes it in the background, and agents use the
	// digest in their name until then.
	Sum string
}

// computeChecksum computes the checksum.
func (p Program) computeChecksum() (string, error) {
	from, err := p.Open()
	if err != nil {
		return "", err
	}
	sum := ownfile.NewSum()
	_, err = io.Copy(sum, from)
	return ownfile.SumText(sum), errors.Join(err, from.Close())
}

// FileProgram returns the program in a file.
func FileProgram(file string) (Program, error) {
	f, err := os.Open(file)
	if err != nil {
		return Program{}, fmt.Errorf("reading the node agent: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	digest, sum := sha256.New(), ownfile.NewSum()
	size, err := io.Copy(io.MultiWriter(digest, sum), f)
	if err != nil {
		return Program{}, fmt.Errorf("reading the node agent: %w", err)
	}
	open := func() (io.ReadCloser, error) { return os.Open(file) }
	return Program{Path: ProgramPath(digestOf(digest)), Digest: digestOf(digest), Size: size, Open: open, Sum: ownfile.SumText(sum)}, nil
}

func digestOf(sum hash.Hash) bundle.Digest {
	return bundle.Digest("sha256:" + hex.EncodeToString(sum.Sum(nil)))
}

// Files are the files of a host. Paths are those of SFTP on Windows, such as /C:/k. A file that does not exist is
// fs.ErrNotExist, one that may not be accessed fs.ErrPermission.
type Files interface {
	// Folder returns the files of a folder, which it makes if it does not exist. The one above it must exist.
	Folder(path string) ([]fs.FileInfo, error)
	// Read writes the first bytes of a file to a writer, size at most.
	Read(path string, to io.Writer, size int64) error
	// Write writes size bytes to the file and flushes them to the disk if the host can. At 0 it creates the file;
	// elsewhere the file must exist. If it is interrupted, the last InFlight bytes of the file may have holes.
	Write(path string, from io.Reader, at, size int64) error
	// Replace renames a file. A file that has the new name is replaced.
	Replace(from, to string) error
	Remove(path string) error
}

// ErrNoSFTP means that the host transfers no files.
var ErrNoSFTP = errors.New("the host's SSH server does not offer SFTP")

// InFlight is how many bytes Files.Write may have sent without an answer.
const InFlight = 1 << 20

// leftoverAge is how old a leftover of an interrupted upload must be before it is deleted. No upload takes that long.
// Both times are of the host's clock.
const leftoverAge = 6 * time.Hour

// checkInstalled returns a *NotInstalledError if the host lacks the program, byte for byte. It makes no folder.
func (a *Agent) checkInstalled(ctx context.Context) error {
	program := a.client.program
	lacks := &NotInstalledError{Target: a.target, Path: program.Path}
	err := a.client.transport.Transfer(ctx, a.target, func(files Files) error {
		sum := sha256.New()
		err := files.Read(sftpPath(program.Path), &progressWriter{Writer: sum, progress: func() { noteProgress(ctx) }}, program.Size+1)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return lacks
		case err != nil:
			return fmt.Errorf("reading %s: %w", program.Path, err)
		case digestOf(sum) != program.Digest:
			lacks.Err = errors.New("another file has its name")
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

// placeProgram makes sure that the host has the program, byte for byte, and reports whether it was uploaded. A program
// that was uploaded has compared itself with the whole digest. A failed upload is a *ProgramError. A client that only
// observes uploads nothing.
func (a *Agent) placeProgram(ctx context.Context) (uploaded bool, err error) {
	if err := TakePlace(ctx); err != nil {
		return false, err
	}
	ctx, cancel := withLimit(ctx, a.client.limits.Upload, "the upload of the node agent")
	defer cancel()
	if a.client.leaves {
		return false, a.checkInstalled(ctx)
	}
	if err := a.checkMayChange(ctx); err != nil {
		return false, err
	}
	uploaded, resumed, err := a.uploadProgram(ctx, upload.resumeUpload)
	if err == nil && uploaded {
		err = a.verifyUploaded(ctx)
	}
	// An interrupted upload may have left something else.
	if resumed && err != nil && !errors.As(err, new(*InterruptedError)) {
		if uploaded, _, err = a.uploadProgram(ctx, upload.uploadFromStart); err == nil {
			err = a.verifyUploaded(ctx)
		}
	}
	return uploaded && err == nil, err
}

// uploadProgram uploads the program in one of the two ways, upload.resumeUpload and upload.uploadFromStart.
func (a *Agent) uploadProgram(ctx context.Context, way func(upload) (done, resumed bool, err error)) (uploaded, resumed bool, err error) {
	err = a.client.transport.Transfer(ctx, a.target, func(files Files) error {
		u := upload{
			Files: files, program: a.client.program, target: sftpPath(a.client.program.Path), progress: func() { noteProgress(ctx) },
			copying:   func(at int64) io.Writer { return newCopying(ctx, "the node program", at, a.client.program.Size) },
			mayChange: func() error { return a.checkMayChange(ctx) }, pause: func() error { return waitFor(ctx, growPause) },
		}
		uploaded, resumed, err = way(u)
		switch {
		case err == nil || errors.Is(err, errMayNot):
			return err
		default:
			return a.programError(err, fixForUpload(err))
		}
	})
	if errors.Is(err, ErrNoSFTP) {
		err = a.programError(err, `check that C:\ProgramData\ssh\sshd_config on the host has the line "Subsystem sftp sftp-server.exe", and restart the service sshd`)
	}
	return uploaded, resumed, err
}

func (a *Agent) programError(err error, fix string) error {
	return &ProgramError{Target: a.target, Path: a.client.program.Path, Err: err, Todo: fix}
}

func fixForUpload(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "connect as a member of Administrators, and check that they may write to " + bundle.UploadFolder
	case errors.Is(err, ErrOtherUpload):
		return "run it again when the other upload has ended"
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
	// progress is called when another piece has been read or written.
	progress func()
	// copying returns a writer that is told of the bytes that are copied from an offset on.
	copying func(at int64) io.Writer
	// mayChange returns an error if the client must not change the host any longer: an upload takes its time.
	mayChange func() error
	// pause waits for growPause.
	pause func() error
}

// resumeUpload reads the program back from the host. Where it is missing or differs, resume writes it beside its
// target, after what an interrupted upload has left there, and renames it when it is complete and flushed. It is not
// read back then: it compares itself with the whole digest (Agent.verifyUploaded).
func (u upload) resumeUpload() (done, resumed bool, err error) {
	entries, right, err := u.listFolder()
	if right || err != nil {
		return false, false, err
	}
	name, at, err := u.claimInterrupted(entries)
	if err != nil {
		return false, false, err
	}
	if name != "" {
		if err := u.finishUpload(name, at); err == nil {
			return true, true, nil
		}
		_ = u.Remove(name) // where this fails, the next upload goes on with it
	}
	return u.uploadFromStart()
}

// uploadFromStart writes the program to a new file. It is also done if another upload has put the program there.
func (u upload) uploadFromStart() (done, resumed bool, err error) {
	name, err := temporaryName(u.target)
	if err != nil {
		return false, false, err
	}
	err = u.finishUpload(name, 0)
	if err == nil {
		return true, false, nil
	}
	_ = u.Remove(name) // where this fails, the next upload goes on with it
	if _, right, looked := u.listFolder(); right && looked == nil {
		return false, false, nil
	}
	return false, false, err
}

// listFolder returns the files of the folder, and whether the program is there.
func (u upload) listFolder() ([]fs.FileInfo, bool, error) {
	folder := path.Dir(u.target)
	entries, err := u.Folder(folder)
	if err != nil {
		return nil, false, fmt.Errorf("opening folder %s: %w", folder, err)
	}
	right, err := u.checkProgram(entries, u.target)
	return entries, right, err
}

// finishUpload writes the program to a file from an offset on, and gives the file its name.
func (u upload) finishUpload(name string, at int64) error {
	entries, err := u.writeProgram(name, at)
	if err == nil {
		err = u.mayChange()
	}
	if err == nil {
		err = u.Replace(name, u.target)
	}
	switch {
	case err != nil && u.isMissingFile(name):
		return fmt.Errorf("%w: %w", ErrOtherUpload, err)
	case err != nil:
		return err
	}
	u.deleteOlder(entries, findFile(entries, name).ModTime())
	return nil
}

// isMissingFile reports whether a file of the folder is not there any longer.
func (u upload) isMissingFile(name string) bool {
	entries, err := u.Folder(path.Dir(name))
	return err == nil && findFile(entries, name) == nil
}

// checkProgram reports whether a file is the program. It reads all of it: a name and a size prove nothing.
func (u upload) checkProgram(entries []fs.FileInfo, file string) (bool, error) {
	if f := findFile(entries, file); f == nil || f.Size() != u.program.Size {
		return false, nil
	}
	sum := sha256.New()
	if err := u.Read(file, &progressWriter{Writer: sum, progress: u.progress}, u.program.Size); err != nil {
		return false, fmt.Errorf("reading %s: %w", file, err)
	}
	return digestOf(sum) == u.program.Digest, nil
}

// findFile returns the file at a path, nil if there is none. Windows ignores case.
func findFile(entries []fs.FileInfo, file string) fs.FileInfo {
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
	return target + "." + hex.EncodeToString(serial[:]) + bundle.NewMark, nil
}

// writeProgram writes the program from an offset on, and flushes it. It returns the files that are in the folder then.
func (u upload) writeProgram(name string, at int64) ([]fs.FileInfo, error) {
	from, err := u.program.Open()
	if err != nil {
		return nil, fmt.Errorf("reading the node agent: %w", err)
	}
	defer from.Close() //nolint:errcheck // only read from
	if _, err := io.CopyN(io.Discard, from, at); err != nil {
		return nil, fmt.Errorf("reading the node agent: %w", err)
	}
	if err := u.Write(name, &progressReader{Reader: io.TeeReader(from, u.copying(at)), progress: u.progress}, at, u.program.Size-at); err != nil {
		return nil, fmt.Errorf("writing %s: %w", name, err)
	}
	entries, err := u.Folder(path.Dir(name))
	if err != nil {
		return nil, fmt.Errorf("listing folder %s: %w", path.Dir(name), err)
	}
	if f := findFile(entries, name); f == nil || f.Size() != u.program.Size {
		return nil, fmt.Errorf("writing %s: the file is not there, or has another size than was written", name)
	}
	return entries, nil
}

// deleteOlder deletes older programs and leftovers of interrupted uploads. The newest older program stays, for callers
// of another version; Windows keeps any that runs. What cannot be deleted stays until the next upload.
func (u upload) deleteOlder(entries []fs.FileInfo, now time.Time) {
	folder := path.Dir(u.target)
	var older []fs.FileInfo
	for _, e := range entries {
		switch {
		case bundle.Temporary(e.Name()):
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
