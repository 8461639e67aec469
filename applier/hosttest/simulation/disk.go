package simulation

import (
	"io"

	"wmco/applier"
	"wmco/bundle"
)

// Disk holds the files of a simulated host. Its paths are Drive itself and those that CheckPath allows. It compares names
// without regard to case, keeps the case in which a name was made, and never follows a link. Its errors are SystemErrors
// where Windows has one. What Windows does on top of it, such as moving programs that run aside, is done by Host.
type Disk interface {
	DiskReader
	DiskWriter
}

// DiskReader reads a Disk.
type DiskReader interface {
	// Stat returns what is at each of the paths, in their order.
	Stat(paths []string) ([]applier.FileInfo, error)
	// List returns what is in a folder, sorted by name. A folder that is not there is empty.
	List(folder string) ([]applier.FileInfo, error)
	// Open opens a file that is there. Replacing and removing the file do not affect the reader.
	Open(path string) (io.ReadCloser, error)
}

// DiskWriter changes a Disk. Rename, Remove, MakeFolder and Truncate return when the change will survive a loss of power.
type DiskWriter interface {
	// Create makes a file in a folder that is there, under a name that is free, and flushes its contents. Nobody reads more
	// of it than access allows at any time. When it fails, a part of the file may stay.
	Create(path string, access bundle.Access, content io.Reader) error
	// MakeFolder makes a folder in one that is there, or gives the access to one that is there.
	MakeFolder(path string, access bundle.Access) error
	// Link gives a file a second name, which is free.
	Link(path, second string) error
	// Rename gives a file another name in the same folder, and replaces the file that has that name.
	Rename(path, to string) error
	// Remove removes a file, a link or an empty folder.
	Remove(path string) error
	// Truncate empties a file.
	Truncate(path string) error
}

func statOne(d DiskReader, path string) (applier.FileInfo, error) {
	infos, err := d.Stat([]string{path})
	if err != nil {
		return applier.FileInfo{}, err
	}
	return infos[0], nil
}
