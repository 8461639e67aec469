package folderhost

import (
	"errors"
	"io/fs"
	"os"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

// place is the entry at a Windows path.
type place struct {
	// rel is the path below the root of the host, in the case of the entry. It is empty if its folder does not
	// exist.
	rel string
	// info is nil if nothing is there.
	info fs.FileInfo
}

func (p place) kind() plan.FileKind {
	switch {
	case p.info == nil:
		return plan.FileAbsent
	case p.info.Mode().IsRegular():
		return plan.FileRegular
	case p.info.IsDir():
		return plan.FileDirectory
	}
	return plan.FileOther
}

// resolver finds the entries at paths, element by element, without regard to case and without following links. It remembers
// folders, so each operation needs a new one.
type resolver struct {
	tree    *os.Root
	folders map[string]*folder
}

// folder is a folder that was searched.
type folder struct {
	rel   string
	there bool
	// at is the folder, opened when it is needed: opening each path from the root would open all folders above it
	// again.
	at *os.Root
	// names are the names in it by their folded form, read when they are needed.
	names map[string]string
}

func newResolver(tree *os.Root) *resolver {
	drive := &folder{rel: driveFolder, there: true}
	return &resolver{tree: tree, folders: map[string]*folder{bundle.FoldPath(simulation.Drive): drive}}
}

// close closes the folders that were opened.
func (r *resolver) close() {
	for _, f := range r.folders {
		if f.at != nil {
			_ = f.at.Close() // only looked into
		}
	}
}

// find returns the entry at a path of a simulation.Disk.
func (r *resolver) find(path string) (place, error) {
	if path == simulation.Drive {
		info, err := r.tree.Lstat(driveFolder)
		return place{rel: driveFolder, info: info}, err
	}
	f, err := r.folder(bundle.Dir(path))
	if err != nil || !f.there {
		return place{}, err
	}
	return r.entry(f, bundle.Base(path))
}

func (r *resolver) folder(path string) (*folder, error) {
	key := bundle.FoldPath(path)
	if f, ok := r.folders[key]; ok {
		return f, nil
	}
	p, err := r.find(path)
	if err != nil {
		return nil, err
	}
	f := &folder{rel: p.rel, there: p.kind() == plan.FileDirectory}
	r.folders[key] = f
	return f, nil
}

func (r *resolver) entry(f *folder, base string) (place, error) {
	p, err := r.exactly(f, base)
	if err != nil || p.info != nil {
		return p, err
	}
	if err := r.readNames(f); err != nil {
		return place{}, err
	}
	if spelled, ok := f.names[bundle.FoldPath(base)]; ok {
		return r.exactly(f, spelled)
	}
	return p, nil
}

func (r *resolver) exactly(f *folder, base string) (place, error) {
	rel := f.rel + "/" + base
	if f.at == nil {
		at, err := r.tree.OpenRoot(f.rel)
		if errors.Is(err, fs.ErrNotExist) {
			return place{rel: rel}, nil
		}
		if err != nil {
			return place{}, err
		}
		f.at = at
	}
	info, err := f.at.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) {
		return place{rel: rel}, nil
	}
	return place{rel: rel, info: info}, err
}

func (r *resolver) readNames(f *folder) error {
	if f.names != nil {
		return nil
	}
	names, err := readNames(r.tree, f.rel)
	if err != nil {
		return err
	}
	f.names = make(map[string]string, len(names))
	for _, n := range names {
		f.names[bundle.FoldPath(n)] = n
	}
	return nil
}

func readNames(tree *os.Root, rel string) ([]string, error) {
	d, err := tree.Open(rel)
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	return names, errors.Join(err, d.Close())
}
