package winetest

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// server2022 makes Wine report Windows Server 2022.
//
//go:embed server2022.reg
var server2022 []byte

// shared is the size from which clones link a file of the template instead of copying it. Such files belong to root, so
// that no program changes them in all clones. A program may still replace them.
const shared = 32 << 10

// ensureTemplate returns the folder with a new installation of Windows, beside the Debian: clones must be on the same
// file system. The first caller creates it. Others wait, in other programs too.
func ensureTemplate(ctx context.Context, root string) (string, error) {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(filepath.Dir(root), fmt.Sprintf("prefix-%.6x", sha256.Sum256(server2022)))
	lock, err := os.OpenFile(folder+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close() //nolint:errcheck // nothing was written
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("waiting for another test to create the template: %w", err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		return folder, err
	}
	if err := makeTemplate(ctx, root, folder); err != nil {
		return "", fmt.Errorf("creating the template of Windows: %w", err)
	}
	return folder, nil
}

// makeTemplate renames the folder when it is complete.
func makeTemplate(ctx context.Context, root, folder string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	work := folder + ".new"
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	for _, f := range []string{work, filepath.Join(work, "drive_c")} {
		if err := os.Mkdir(f, 0o755); err != nil {
			return err
		}
		if err := os.Chown(f, user, user); err != nil {
			return err
		}
	}
	m, err := start(root, work, NetworkOfHost)
	if err != nil {
		return err
	}
	if err = m.installTools(ctx, work); err == nil {
		err = os.Rename(work, folder)
	}
	// The end of the machine removes the folder work, unless it was renamed.
	return errors.Join(err, m.stop())
}

// installTools installs Windows Server 2022 into an empty folder.
func (m *machine) installTools(ctx context.Context, folder string) error {
	const registry = `C:\server2022.reg`
	file := filepath.Join(folder, "drive_c", "server2022.reg")
	err := m.must(ctx, Command{Path: "wineboot", Args: []string{"--init"}})
	if err == nil {
		err = os.WriteFile(file, server2022, 0o644)
	}
	if err == nil {
		err = m.must(ctx, Command{Path: "regedit", Args: []string{"/S", registry}})
	}
	if err != nil {
		return err
	}
	return errors.Join(m.shutDown(ctx), os.Remove(file), sealTemplate(folder))
}

// must runs a program and returns an error if it fails.
func (m *machine) must(ctx context.Context, c Command) error {
	r, err := m.run(ctx, c)
	if err == nil && r.ExitCode != 0 {
		err = fmt.Errorf("exit code %d: %s%s", r.ExitCode, r.Stdout, r.Stderr)
	}
	if err != nil {
		return fmt.Errorf("running %s %q: %w", c.Path, c.Args, err)
	}
	return nil
}

// sealTemplate makes root the owner of the files that clones share.
func sealTemplate(folder string) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if share, err := isShared(d); err != nil || !share {
			return err
		}
		return os.Chown(path, 0, 0)
	})
}

func isShared(d fs.DirEntry) (bool, error) {
	if !d.Type().IsRegular() || filepath.Ext(d.Name()) == ".reg" {
		return false, nil
	}
	info, err := d.Info()
	return err == nil && info.Size() >= shared, err
}

// cloneTemplate copies the template to an empty folder. It links large files.
func cloneTemplate(from, to string) error {
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		return cloneEntry(d, path, filepath.Join(to, rel))
	})
	if err != nil {
		return fmt.Errorf("cloning the template of Windows: %w", err)
	}
	return nil
}

func cloneEntry(d fs.DirEntry, from, to string) error {
	share, err := isShared(d)
	switch {
	case err != nil:
		return err
	case share:
		return os.Link(from, to)
	case d.IsDir():
		// The first folder exists.
		if err = os.Mkdir(to, 0o755); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	case d.Type() == fs.ModeSymlink:
		var target string
		if target, err = os.Readlink(from); err == nil {
			err = os.Symlink(target, to)
		}
	default:
		var data []byte
		if data, err = os.ReadFile(from); err == nil {
			err = os.WriteFile(to, data, 0o644)
		}
	}
	if err != nil {
		return err
	}
	return os.Lchown(to, user, user)
}
