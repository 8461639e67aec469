package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/pkg/sftp"
	"wmco/applier/remote"
)

// sftpRequests is the number of writes of 32 KiB in flight.
const sftpRequests = remote.InFlight / (32 << 10)

// Transfer implements remote.Transport.
func (t *Transport) Transfer(ctx context.Context, to remote.Target, do func(remote.Files) error) error {
	s, err := t.startChannel(ctx, to, channelRequest{kind: "subsystem", what: "sftp", name: "sftp"})
	if err != nil {
		return err
	}
	defer t.keepConnection(s.conn)
	defer func() { _ = s.channel.Close() }() // the SFTP client has closed it, if there was one
	if !s.accepted {
		return remote.ErrNoSFTP
	}
	ctx, w := s.watchAnswers(ctx)
	defer w.stop()
	in := &meter{Reader: heardReader{s.channel, w}}
	in.left.Store(sftpAnswers)
	err = s.transferFiles(in, heardWriter{s.channel, w}, do)
	if ctx.Err() != nil {
		return s.interruptedError("sftp", context.Cause(ctx))
	}
	return err
}

func (s *session) transferFiles(in *meter, out io.WriteCloser, do func(remote.Files) error) error {
	client, err := sftp.NewClientPipe(in, out, sftp.UseConcurrentWrites(true), sftp.MaxConcurrentRequestsPerFile(sftpRequests))
	if err != nil {
		return fmt.Errorf("%w: %w", remote.ErrNoSFTP, err)
	}
	defer client.Close() //nolint:errcheck // what was written is checked before
	return do(files{client, in})
}

// sftpAnswers is how many bytes a server may send, beside the contents of files: a folder of ten thousand files has 2
// MB.
const sftpAnswers = 8 << 20

var errTooMuch = errors.New("the SFTP server sends too much")

// meter ends a stream that is longer than was asked for.
type meter struct {
	io.Reader
	left atomic.Int64
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	left := m.left.Load()
	if left <= 0 {
		return 0, errTooMuch
	}
	n, err := m.Reader.Read(p[:min(int64(len(p)), left)])
	m.left.Add(-int64(n))
	return n, err
}

// files implements remote.Files.
type files struct {
	*sftp.Client
	in *meter
}

// Folder implements remote.Files.
func (f files) Folder(path string) ([]fs.FileInfo, error) {
	entries, err := f.ReadDir(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return entries, err
	}
	made := f.Mkdir(path) // which fails if another caller makes it first
	if entries, err = f.ReadDir(path); err != nil {
		return nil, errors.Join(made, err)
	}
	return entries, nil
}

// readSize is how much is asked for at once: as many requests as are in flight.
const readSize = sftpRequests * 32 << 10

// Read implements remote.Files.
func (f files) Read(path string, to io.Writer, size int64) error {
	file, err := f.Open(path)
	if err != nil {
		return err
	}
	f.in.left.Add(size + size/16) // with the headers
	buffer := make([]byte, readSize)
	for at := int64(0); at < size && err == nil; {
		var n int
		n, err = file.ReadAt(buffer[:min(int64(len(buffer)), size-at)], at)
		at += int64(n)
		if _, failed := to.Write(buffer[:n]); failed != nil {
			err = failed
		}
		if errors.Is(err, io.EOF) && n > 0 {
			err = nil // an answer that is shorter than was asked for counts as the end
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil // the file is shorter
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// flushes is the extension of OpenSSH's servers for fsync. That of Windows has it too and calls FlushFileBuffers,
// though it reports no failure of it.
const flushes = "fsync@openssh.com"

// Write implements remote.Files.
func (f files) Write(path string, from io.Reader, at, size int64) error {
	how := os.O_WRONLY
	if at == 0 {
		how |= os.O_CREATE | os.O_TRUNC
	}
	file, err := f.OpenFile(path, how)
	if err != nil {
		return err
	}
	if _, err := file.Seek(at, io.SeekStart); err != nil {
		return errors.Join(err, file.Close())
	}
	// A limited reader has a known size, which lets the client write concurrently.
	_, err = file.ReadFrom(io.LimitReader(from, size))
	if version, _ := f.HasExtension(flushes); version == "1" && err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// Replace implements remote.Files. Old servers cannot rename onto a file, or remove it first and may be interrupted in
// between: a file that is already gone is no error. Without the file that is renamed, the other one stays.
func (f files) Replace(from, to string) error {
	err := f.PosixRename(from, to)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if gone := f.Remove(to); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		return fmt.Errorf("replacing %s: %w", to, errors.Join(err, gone))
	}
	if err := f.Rename(from, to); err != nil {
		return fmt.Errorf("renaming to %s: %w", to, err)
	}
	return nil
}
