package memoryssh

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pkg/sftp"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/test/simnode"
	"wmco/internal/test/sshtest/simulated"
)

// serveFiles is the SFTP server of a machine.
func serveFiles(m *simnode.Machine, channel io.ReadWriteCloser) {
	f := files{m}
	server := sftp.NewRequestServer(channel, sftp.Handlers{FileGet: f, FilePut: f, FileCmd: f, FileList: f})
	_ = server.Serve() // it ends with the connection
	_ = server.Close()
}

// files implements the handlers of SFTP for a machine.
type files struct{ *simnode.Machine }

// windowsPath returns the Windows path of /C:/k.
func windowsPath(path string) (string, error) {
	windows := strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", `\`)
	if !strings.HasPrefix(windows, `C:\`) || strings.Contains(windows, "..") {
		return "", os.ErrPermission
	}
	return windows, nil
}

// Fileread implements sftp.FileReader.
func (f files) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	path, err := windowsPath(r.Filepath)
	if err != nil {
		return nil, err
	}
	data, err := f.read(path)
	return bytes.NewReader(data), err
}

// read returns a file. One that is not there is os.ErrNotExist itself, for which SFTP has a status.
func (f files) read(path string) ([]byte, error) {
	data, err := f.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, os.ErrNotExist
	}
	return data, err
}

// Filewrite implements sftp.FileWriter.
func (f files) Filewrite(r *sftp.Request) (io.WriterAt, error) {
	path, err := windowsPath(r.Filepath)
	if err != nil {
		return nil, err
	}
	w := &written{machine: f.Machine, path: path}
	if flags := r.Pflags(); !flags.Trunc {
		w.data, err = f.read(path)
		if flags.Creat && errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = w.Close()
	}
	return w, err
}

// written is a file that is written, by several goroutines at once.
type written struct {
	machine *simnode.Machine
	path    string
	mu      sync.Mutex
	data    []byte
}

// WriteAt implements io.WriterAt.
func (w *written) WriteAt(p []byte, at int64) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if need := int(at) + len(p); need > len(w.data) {
		w.data = append(w.data, make([]byte, need-len(w.data))...)
	}
	return copy(w.data[at:], p), nil
}

// Close implements io.Closer, also after the connection was lost.
func (w *written) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.machine.WriteFile(context.Background(), w.path, bundle.AccessAdmins, w.data)
}

// Filecmd implements sftp.FileCmder.
func (f files) Filecmd(r *sftp.Request) error {
	path, err := windowsPath(r.Filepath)
	if err != nil {
		return err
	}
	switch r.Method {
	case "Mkdir":
		return f.MakeDirectory(context.Background(), path, bundle.AccessAdmins)
	case "Remove", "Rmdir":
		if _, err := f.read(path); err != nil {
			return err
		}
		return f.RemoveFile(path)
	case "Setstat":
		return nil
	}
	return sftp.ErrSSHFxOpUnsupported
}

// PosixRename implements sftp.PosixRenameFileCmder.
func (f files) PosixRename(r *sftp.Request) error {
	path, err := windowsPath(r.Filepath)
	if err != nil {
		return err
	}
	to, err := windowsPath(r.Target)
	if err != nil {
		return err
	}
	data, err := f.read(path)
	if err != nil {
		return err
	}
	return errors.Join(f.WriteFile(context.Background(), to, bundle.AccessAdmins, data), f.RemoveFile(path))
}

// Filelist implements sftp.FileLister.
func (f files) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	path, err := windowsPath(r.Filepath)
	if err != nil {
		return nil, err
	}
	found, err := f.Stat(context.Background(), []string{path})
	if err == nil && found[0].Kind != plan.FileAbsent && r.Method == "List" {
		found, err = f.List(context.Background(), path)
	}
	var all simulated.Listing
	for _, x := range found {
		if x.Kind == plan.FileAbsent {
			return nil, os.ErrNotExist
		}
		all = append(all, entry{x})
	}
	return all, err
}

// entry implements fs.FileInfo.
type entry struct{ plan.FileInfo }

func (e entry) Name() string { return bundle.Base(e.Path) }

func (e entry) Size() int64 { return e.FileInfo.Size }

func (e entry) Mode() fs.FileMode {
	if e.IsDir() {
		return fs.ModeDir | 0o700
	}
	return 0o600
}

func (e entry) ModTime() time.Time { return e.Modified }

func (e entry) IsDir() bool { return e.Kind == plan.FileDirectory }

func (e entry) Sys() any { return nil }
