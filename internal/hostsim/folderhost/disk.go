package folderhost

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

// fileModes and folderModes are the modes that stand for accesses. Those of AccessOther are given to copies of such
// files.
var (
	fileModes = map[bundle.Access]fs.FileMode{
		bundle.AccessUsers: 0o644, bundle.AccessAdmins: 0o600, plan.AccessOther: 0o640,
	}
	folderModes = map[bundle.Access]fs.FileMode{bundle.AccessUsers: 0o755, bundle.AccessAdmins: 0o700}
)

// foreign is the bit in the mode of files that are not owned by the administrators.
const foreign = fs.ModeSticky

// disk is the simulation.Disk in the folder driveFolder of the tree.
type disk struct {
	tree     *os.Root
	onChange func()
}

// Stat implements simulation.Disk.
func (d disk) Stat(paths []string) ([]plan.FileInfo, error) {
	infos := make([]plan.FileInfo, 0, len(paths))
	r := newResolver(d.tree)
	defer r.close()
	for _, path := range paths {
		p, err := r.find(path)
		if err != nil {
			return nil, simulation.FileError(path, systemError(err))
		}
		infos = append(infos, p.fileInfo(path))
	}
	return infos, nil
}

func (p place) fileInfo(path string) plan.FileInfo {
	if p.info == nil {
		return plan.FileInfo{Path: path}
	}
	info := plan.FileInfo{
		Path: path, Kind: p.kind(), Modified: p.info.ModTime(), ID: fileID(p.info), Access: accessOf(p.info), Owner: ownerOf(p.info),
	}
	if info.Owner == plan.OwnerOther {
		info.Access = plan.AccessOther
	}
	if info.Kind == plan.FileRegular {
		info.Size = p.info.Size()
	}
	return info
}

// List implements simulation.Disk.
func (d disk) List(directory string) ([]plan.FileInfo, error) {
	r := newResolver(d.tree)
	defer r.close()
	f, err := r.folder(directory)
	if err != nil || !f.there {
		return nil, systemError(err)
	}
	names, err := readNames(d.tree, f.rel)
	if err != nil {
		return nil, systemError(err)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(bundle.FoldPath(a), bundle.FoldPath(b)) })
	infos := make([]plan.FileInfo, 0, len(names))
	for _, name := range names {
		p, err := r.exactly(f, name)
		if err != nil {
			return nil, systemError(err)
		}
		if p.info != nil {
			infos = append(infos, p.fileInfo(simulation.Join(directory, name)))
		}
	}
	return infos, nil
}

// Open implements simulation.Disk.
func (d disk) Open(path string) (io.ReadCloser, error) {
	var f *os.File
	err := d.at([]string{path}, func(at []place) (err error) {
		f, err = d.tree.Open(at[0].rel)
		return err
	})
	return f, err
}

// Create implements simulation.Disk.
func (d disk) Create(path string, access bundle.Access, content io.Reader) error {
	return d.change([]string{path}, func(at []place) error {
		f, err := d.tree.OpenFile(at[0].rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		d.onChange()
		if err := f.Chmod(fileModes[access]); err != nil {
			return errors.Join(err, f.Close())
		}
		if _, err := io.Copy(f, content); err != nil {
			return errors.Join(err, f.Close())
		}
		return f.Close()
	})
}

// MakeFolder implements simulation.Disk.
func (d disk) MakeFolder(name string, access bundle.Access) error {
	return d.change([]string{name}, func(at []place) error {
		if at[0].info == nil {
			return d.createFolder(at[0].rel, folderModes[access])
		}
		return d.tree.Chmod(at[0].rel, folderModes[access])
	})
}

// createFolder makes a folder that is never seen with another mode, as a folder on Windows is created with its access:
// Mkdir takes away the bits of the umask, so it is made outside of the drive.
func (d disk) createFolder(rel string, mode fs.FileMode) error {
	const beside = dirMachine + "/folder.new"
	if err := d.tree.Remove(beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.tree.Mkdir(beside, 0o700); err != nil {
		return err
	}
	if err := d.tree.Chmod(beside, mode); err != nil {
		return err
	}
	d.onChange()
	return d.tree.Rename(beside, rel)
}

// Link implements simulation.Disk.
func (d disk) Link(path, second string) error {
	return d.change([]string{path, second}, func(at []place) error { return d.tree.Link(at[0].rel, at[1].rel) })
}

// Rename implements simulation.Disk.
func (d disk) Rename(name, to string) error {
	return d.change([]string{name, to}, func(at []place) error { return d.tree.Rename(at[0].rel, at[1].rel) })
}

// Move implements simulation.Disk.
func (d disk) Move(name, to string) error {
	return d.change([]string{name, to}, func(at []place) error { return d.tree.Rename(at[0].rel, at[1].rel) })
}

// ownerOf returns whose something is.
func ownerOf(info fs.FileInfo) plan.Owner {
	if info.Mode()&foreign != 0 {
		return plan.OwnerOther
	}
	return plan.OwnerAdmins
}

// Remove implements simulation.Disk.
func (d disk) Remove(name string) error {
	return d.change([]string{name}, func(at []place) error { return d.tree.Remove(at[0].rel) })
}

// Truncate implements simulation.Disk.
func (d disk) Truncate(path string) error {
	return d.change([]string{path}, func(at []place) error {
		f, err := d.tree.OpenFile(at[0].rel, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return err
		}
		return f.Close()
	})
}

// change changes something at the places of paths, the folders of which must be there.
func (d disk) change(paths []string, do func([]place) error) error {
	return d.at(paths, func(at []place) error {
		d.onChange()
		return do(at)
	})
}

// at does something at the places of paths, the folders of which must be there.
func (d disk) at(paths []string, do func([]place) error) error {
	r := newResolver(d.tree)
	defer r.close()
	places := make([]place, 0, len(paths))
	for _, path := range paths {
		p, err := r.find(path)
		if err == nil && p.rel == "" {
			err = fs.ErrNotExist
		}
		if err != nil {
			return systemError(err)
		}
		places = append(places, p)
	}
	return systemError(do(places))
}

// systemError returns the error that Windows has for one of this system.
func systemError(err error) error {
	var code simulation.SystemError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &code): // of the content: the drive has no more room
		return err
	case errors.Is(err, syscall.ENOSPC):
		code = simulation.ErrDiskFull
	case errors.Is(err, fs.ErrPermission):
		code = simulation.ErrAccessDenied
	case errors.Is(err, fs.ErrNotExist):
		code = simulation.ErrFileNotFound
	default:
		code = simulation.ErrIODevice
	}
	return fmt.Errorf("%w: %w", code, err)
}
