package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"wmco/applier"
)

// sftpRequests is how many writes of 32 KiB are under way at once: 1 MiB per machine.
const sftpRequests = 32

// leftoverAge is how old what a cut upload left must be before it is removed: nobody uploads for so long. Both times are the
// machine's own.
const leftoverAge = 6 * time.Hour

// place makes sure that the program lies on the machine, and tells whether it had to be put there. What keeps it from
// there is a *ProgramError.
func (m *Machine) place(ctx context.Context) (placed bool, err error) {
	err = m.over(ctx, func(c *conn) error {
		o, err := c.open(ctx)
		if err != nil {
			return err
		}
		return c.watched(ctx, "sftp", func(_ context.Context, n noise) error {
			placed, err = m.placeOver(o, n)
			_ = o.channel.Close() // the SFTP client has done so, unless there was none
			return err
		})
	})
	return placed, err
}

func (m *Machine) placeOver(o opened, n noise) (bool, error) {
	go ssh.DiscardRequests(o.requests)
	accepted, err := o.channel.SendRequest("subsystem", true, ssh.Marshal(struct{ Name string }{"sftp"}))
	if err != nil {
		return false, &InterruptedError{Target: m.target, Command: "sftp", Err: err}
	}
	if !accepted {
		return false, m.noSFTP(errors.New("the machine's SSH server has no SFTP"))
	}
	files, err := sftp.NewClientPipe(listening{o.channel, n}, feedingCloser{feeding{o.channel, n}, o.channel},
		sftp.UseConcurrentWrites(true), sftp.MaxConcurrentRequestsPerFile(sftpRequests))
	if err != nil {
		return false, m.noSFTP(fmt.Errorf("the machine's SFTP does not answer: %w", err))
	}
	defer files.Close() //nolint:errcheck // everything that was written is checked before
	u := upload{files: files, program: m.client.program}
	placed, err := u.run()
	if err != nil {
		return false, &ProgramError{Target: m.target, Path: m.client.program.Path, Err: err, Todo: uploadTodo(err)}
	}
	return placed, nil
}

func (m *Machine) noSFTP(err error) error {
	return &ProgramError{
		Target: m.target, Path: m.client.program.Path, Err: err,
		Todo: `see that C:\ProgramData\ssh\sshd_config on the machine has the line "Subsystem sftp sftp-server.exe", and restart the service sshd; or copy the program there by hand`,
	}
}

func uploadTodo(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "connect as a member of Administrators, and see that no other account owns the folder"
	}
	return "see that the machine's drive C: has room and that no scanner holds the file, and run it again"
}

// feedingCloser is what the SFTP client writes to.
type feedingCloser struct {
	feeding
	io.Closer
}

// upload is one program on its way to a machine.
type upload struct {
	files   *sftp.Client
	program Program
}

// run uploads the program beside its place and moves it there when it is whole.
func (u upload) run() (placed bool, err error) {
	target := sftpPath(u.program.Path)
	info, err := u.files.Stat(target)
	switch {
	case err == nil && info.Size() == u.program.Size:
		return false, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	if err := u.makeFolder(path.Dir(target)); err != nil {
		return false, err
	}
	temporary, err := temporaryName(target)
	if err != nil {
		return false, err
	}
	written, err := u.write(temporary)
	if err == nil {
		err = u.replace(temporary, target)
	}
	if err != nil {
		_ = u.files.Remove(temporary) // the next upload does, if this one cannot
		return false, err
	}
	u.tidy(target, written)
	return true, nil
}

// makeFolder makes the folder and those above it.
func (u upload) makeFolder(folder string) error {
	if _, err := u.files.Stat(folder); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := u.makeFolder(path.Dir(folder)); err != nil {
		return err
	}
	if err := u.files.Mkdir(folder); err != nil {
		if _, gone := u.files.Stat(folder); gone == nil {
			return nil // somebody else made it meanwhile
		}
		return fmt.Errorf("making folder %s: %w", folder, err)
	}
	return nil
}

// temporaryName is a name of its own for every upload: two at once do not write into each other's file.
func temporaryName(target string) (string, error) {
	var serial [4]byte
	if _, err := rand.Read(serial[:]); err != nil {
		return "", err
	}
	return applier.NewName(target + "." + hex.EncodeToString(serial[:])), nil
}

// write writes the program and checks its size there. It returns when that was by the machine's clock.
func (u upload) write(name string) (time.Time, error) {
	from, err := u.program.Open()
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the node program: %w", err)
	}
	defer from.Close() //nolint:errcheck // only read from
	file, err := u.files.Create(name)
	if err != nil {
		return time.Time{}, fmt.Errorf("creating %s: %w", name, err)
	}
	// A limited reader tells its size, which lets the client write concurrently.
	n, err := file.ReadFrom(io.LimitReader(from, u.program.Size))
	if err := errors.Join(err, file.Close()); err != nil {
		return time.Time{}, fmt.Errorf("writing %s: %w", name, err)
	}
	info, err := u.files.Stat(name)
	if err != nil {
		return time.Time{}, err
	}
	if n != u.program.Size || info.Size() != n {
		return time.Time{}, fmt.Errorf("writing %s: it has %d bytes there, not %d", name, info.Size(), u.program.Size)
	}
	return info.ModTime(), nil
}

// replace puts the temporary file in its place. Old servers cannot rename onto a file, or remove the target first and may
// be cut in between: a target that is missing is fine.
func (u upload) replace(temporary, target string) error {
	err := u.files.PosixRename(temporary, target)
	if err == nil {
		return nil
	}
	if gone := u.files.Remove(target); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		return fmt.Errorf("replacing %s: %w", target, errors.Join(err, gone))
	}
	if err := u.files.Rename(temporary, target); err != nil {
		return fmt.Errorf("renaming to %s: %w", target, err)
	}
	return nil
}

// tidy removes older programs and what cut uploads left. The newest older program stays, because the machine's service may
// run it; Windows keeps any that runs. What cannot be removed stays for the next time.
func (u upload) tidy(target string, written time.Time) {
	entries, err := u.files.ReadDir(path.Dir(target))
	if err != nil {
		return
	}
	var older []fs.FileInfo
	for _, e := range entries {
		name := path.Join(path.Dir(target), e.Name())
		switch {
		case applier.Leftover(e.Name()):
			if written.Sub(e.ModTime()) > leftoverAge {
				_ = u.files.Remove(name)
			}
		case name != target && isProgram(e.Name(), path.Base(target)):
			older = append(older, e)
		}
	}
	slices.SortFunc(older, func(a, b fs.FileInfo) int { return cmp.Compare(b.ModTime().UnixNano(), a.ModTime().UnixNano()) })
	for _, e := range older[min(1, len(older)):] {
		_ = u.files.Remove(path.Join(path.Dir(target), e.Name()))
	}
}

// isProgram tells whether name differs from ours in nothing but the digest.
func isProgram(name, ours string) bool {
	i := strings.LastIndexByte(ours, '-')
	return i > 0 && len(name) == len(ours) && strings.HasPrefix(name, ours[:i+1]) && path.Ext(name) == path.Ext(ours)
}
