package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"wmco/applier/remote"
)

// sftpRequests is the number of writes of 32 KiB in flight: 1 MiB per host.
const sftpRequests = 32

// Transfer implements remote.Transport.
func (t *Transport) Transfer(ctx context.Context, to remote.Target, do func(remote.Files) error) error {
	s, err := t.start(ctx, to, channelRequest{kind: "subsystem", what: "sftp", name: "sftp"})
	if err != nil {
		return err
	}
	defer t.put(s.conn)
	defer func() { _ = s.channel.Close() }() // the SFTP client has closed it, if there was one
	if !s.accepted {
		return remote.ErrNoSFTP
	}
	ctx, w := s.watch(ctx)
	defer w.stop()
	err = s.transfer(w, do)
	if ctx.Err() != nil {
		return s.interrupted("sftp", context.Cause(ctx))
	}
	return err
}

func (s *session) transfer(w *watch, do func(remote.Files) error) error {
	go ssh.DiscardRequests(s.requests)
	client, err := sftp.NewClientPipe(heardReader{s.channel, w}, heardWriter{s.channel, w},
		sftp.UseConcurrentWrites(true), sftp.MaxConcurrentRequestsPerFile(sftpRequests))
	if err != nil {
		return fmt.Errorf("%w: %w", remote.ErrNoSFTP, err)
	}
	defer client.Close() //nolint:errcheck // what was written is checked before
	return do(files{client})
}

// files implements remote.Files.
type files struct{ *sftp.Client }

// Write implements remote.Files.
func (f files) Write(path string, from io.Reader, size int64) error {
	file, err := f.Create(path)
	if err != nil {
		return err
	}
	// A limited reader has a known size, which lets the client write concurrently.
	_, err = file.ReadFrom(io.LimitReader(from, size))
	return errors.Join(err, file.Close())
}

// Replace implements remote.Files. Old servers cannot rename onto a file, or remove it first and may be interrupted in between:
// a file that is already gone is no error.
func (f files) Replace(from, to string) error {
	err := f.PosixRename(from, to)
	if err == nil {
		return nil
	}
	if gone := f.Remove(to); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		return fmt.Errorf("replacing %s: %w", to, errors.Join(err, gone))
	}
	if err := f.Rename(from, to); err != nil {
		return fmt.Errorf("renaming to %s: %w", to, err)
	}
	return nil
}
