package simulated

import (
	"errors"
	"io"
	"os"

	"github.com/pkg/sftp"
)

// ServeFiles runs the host's SFTP server on stdin and stdout.
func (m Machine) ServeFiles() (int, error) {
	if err := m.noteStart(SFTP); err != nil {
		return 1, err
	}
	if m.Settings.Silent == SilentAlways || m.Settings.Silent == SilentSFTP {
		hangForever()
	}
	f := files{m}
	server := sftp.NewRequestServer(streams{os.Stdin, os.Stdout}, sftp.Handlers{FileGet: f, FilePut: f, FileCmd: f, FileList: f})
	if err := server.Serve(); err != nil && !errors.Is(err, io.EOF) {
		return 1, err
	}
	return 0, nil
}

type streams struct {
	io.Reader
	io.WriteCloser
}

// files implements the handlers of sftp for the host's folder.
type files struct{ Machine }

// Fileread implements sftp.FileReader.
func (f files) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	path, err := f.Local(r.Filepath)
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// Filewrite implements sftp.FileWriter.
func (f files) Filewrite(r *sftp.Request) (io.WriterAt, error) {
	path, err := f.Local(r.Filepath)
	if err != nil {
		return nil, err
	}
	if f.Settings.Denied {
		return nil, sftp.ErrSSHFxPermissionDenied
	}
	how := os.O_WRONLY
	if flags := r.Pflags(); flags.Creat {
		how |= os.O_CREATE
		if flags.Trunc {
			how |= os.O_TRUNC
		}
	}
	file, err := os.OpenFile(path, how, 0o700)
	if err != nil {
		return nil, err
	}
	return limited{file, f.Settings.DiskBytes, f.Settings.Silent == SilentUpload}, nil
}

// limited is a file on a disk that fills up, or stops.
type limited struct {
	*os.File
	bytes int64
	stops bool
}

// WriteAt implements io.WriterAt.
func (l limited) WriteAt(p []byte, at int64) (int, error) {
	if l.stops && at >= 1<<20 {
		hangForever()
	}
	if l.bytes > 0 && at+int64(len(p)) > l.bytes {
		return 0, errors.New("no space left on device")
	}
	return l.File.WriteAt(p, at)
}

// Filecmd implements sftp.FileCmder.
func (f files) Filecmd(r *sftp.Request) error {
	path, err := f.Local(r.Filepath)
	if err != nil {
		return err
	}
	if f.Settings.Denied {
		return sftp.ErrSSHFxPermissionDenied
	}
	switch r.Method {
	case "Mkdir":
		return os.Mkdir(path, 0o700)
	case "Remove", "Rmdir":
		return os.Remove(path)
	case "Rename":
		to, err := f.Local(r.Target)
		if err != nil {
			return err
		}
		// SFTP version 3: the target must not exist.
		if _, err := os.Lstat(to); err == nil {
			return os.ErrExist
		}
		return os.Rename(path, to)
	case "Setstat":
		return nil
	}
	return sftp.ErrSSHFxOpUnsupported
}

// PosixRename implements sftp.PosixRenameFileCmder.
func (f files) PosixRename(r *sftp.Request) error {
	path, err := f.Local(r.Filepath)
	if err != nil {
		return err
	}
	to, err := f.Local(r.Target)
	if err != nil {
		return err
	}
	switch f.Settings.Rename {
	case RenamePosix:
		return os.Rename(path, to)
	case RenameUnlinks:
		_ = os.Remove(to) // it may not be there
		return sftp.ErrSSHFxFailure
	case RenameNone:
		return sftp.ErrSSHFxOpUnsupported
	}
	return sftp.ErrSSHFxOpUnsupported
}

// Filelist implements sftp.FileLister.
func (f files) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	path, err := f.Local(r.Filepath)
	if err != nil {
		return nil, err
	}
	if r.Method != "List" {
		info, err := os.Stat(path)
		return Listing{info}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var all Listing
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	return all, nil
}

// Listing implements sftp.ListerAt.
type Listing []os.FileInfo

// ListAt implements sftp.ListerAt.
func (l Listing) ListAt(to []os.FileInfo, at int64) (int, error) {
	if at >= int64(len(l)) {
		return 0, io.EOF
	}
	n := copy(to, l[at:])
	if n < len(to) {
		return n, io.EOF
	}
	return n, nil
}
