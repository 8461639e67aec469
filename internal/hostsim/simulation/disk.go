package simulation

import (
	"io"

	"wmco/applier/plan"
	"wmco/bundle"
)

// Disk holds the files of a simulated host. Its paths are Drive itself and those that CheckPath allows. It compares
// names without regard to case, keeps the case in which a name was made, and never follows a link. Its errors are
// SystemErrors where Windows has one. What Windows does on top of it, such as moving programs that run aside, is done
// by Host.
type Disk interface {
	DiskReader
	DiskWriter
	DiskNames
}

// DiskReader reads a Disk.
type DiskReader interface {
	// Stat returns the entry at each of the paths, in their order.
	Stat(paths []string) ([]plan.FileInfo, error)
	// List returns the entries of a folder, sorted by name. A missing folder is empty.
	List(folder string) ([]plan.FileInfo, error)
	// Open opens an existing file. Replacing and removing the file do not affect the reader.
	Open(path string) (io.ReadCloser, error)
}

// DiskWriter changes files and folders of a Disk.
type DiskWriter interface {
	// Create makes a file under a free name in an existing folder, and flushes its contents. At no time may more users
	// read it than access allows. If it fails, a part of the file may stay.
	Create(path string, access bundle.Access, content io.Reader) error
	// MakeFolder makes a folder in an existing one, or sets the access of an existing folder. It flushes the change.
	MakeFolder(path string, access bundle.Access) error
	// Truncate empties a file and flushes it.
	Truncate(path string) error
}

// DiskNames changes names on a Disk.
type DiskNames interface {
	// Link gives a file a second name, which is free. A Rename of the second name flushes it.
	Link(path, second string) error
	// Rename gives a file another name in the same folder, replaces the file that has that name, and flushes the
	// folder.
	Rename(path, to string) error
	// Move gives a file, a link or a folder with everything in it a path at which nothing is, in an existing folder,
	// and flushes both folders.
	Move(path, to string) error
	// Remove removes a file, a link or an empty folder, and flushes the folder.
	Remove(path string) error
}

func statOne(d DiskReader, path string) (plan.FileInfo, error) {
	infos, err := d.Stat([]string{path})
	if err != nil {
		return plan.FileInfo{}, err
	}
	return infos[0], nil
}
