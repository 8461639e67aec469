package hostsim

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

// memoryDisk is a disk in memory.
type memoryDisk struct {
	now func() time.Time

	mu     sync.Mutex
	names  map[string]name // by key
	serial int
}

// node is a file or folder; hard links are names of one node. Its data is replaced, never changed in place.
type node struct {
	kind     plan.FileKind
	access   bundle.Access
	owner    plan.Owner
	data     []byte
	modified time.Time
	id       string
}

// name is an entry of a folder: a node, and its name in the case in which it was made.
type name struct {
	base string
	*node
}

// newMemoryDisk returns an empty disk.
func newMemoryDisk(now func() time.Time) *memoryDisk {
	d := &memoryDisk{now: now, names: map[string]name{}}
	d.put(simulation.Drive, d.node(plan.FileDirectory, bundle.AccessUsers))
	return d
}

// key is the form in which paths are compared.
func key(path string) string { return strings.TrimSuffix(bundle.FoldPath(path), `\`) }

func (d *memoryDisk) node(kind plan.FileKind, access bundle.Access) *node {
	d.serial++
	return &node{kind: kind, access: access, owner: plan.OwnerAdmins, modified: d.now(), id: strconv.Itoa(d.serial)}
}

func (d *memoryDisk) file(access bundle.Access, data []byte) *node {
	n := d.node(plan.FileRegular, access)
	n.data = data
	return n
}

// put gives a node a name. A name that is there keeps its case.
func (d *memoryDisk) put(path string, n *node) {
	entry, ok := d.names[key(path)]
	if !ok {
		entry.base = bundle.Base(path)
	}
	entry.node = n
	d.names[key(path)] = entry
}

// regular returns the file at a path.
func (d *memoryDisk) regular(path string) (*node, bool) {
	n, ok := d.names[key(path)]
	return n.node, ok && n.kind == plan.FileRegular
}

// Stat implements simulation.Disk.
func (d *memoryDisk) Stat(paths []string) ([]plan.FileInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	infos := make([]plan.FileInfo, 0, len(paths))
	for _, path := range paths {
		infos = append(infos, d.info(path))
	}
	return infos, nil
}

func (d *memoryDisk) info(path string) plan.FileInfo {
	n, ok := d.names[key(path)]
	if !ok {
		return plan.FileInfo{Path: path}
	}
	// In local time, as package os returns it.
	return plan.FileInfo{
		Path: path, Kind: n.kind, Size: int64(len(n.data)), Modified: n.modified.Local(), ID: n.id, Access: n.access, Owner: n.owner,
	}
}

// List implements simulation.Disk.
func (d *memoryDisk) List(folder string) ([]plan.FileInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.info(folder).Kind != plan.FileDirectory {
		return nil, nil
	}
	var infos []plan.FileInfo
	top := key(folder) + `\`
	for _, below := range slices.Sorted(maps.Keys(d.names)) {
		if base, ok := strings.CutPrefix(below, top); ok && !strings.Contains(base, `\`) {
			infos = append(infos, d.info(simulation.Join(folder, d.names[below].base)))
		}
	}
	return infos, nil
}

// Open implements simulation.Disk.
func (d *memoryDisk) Open(path string) (io.ReadCloser, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.regular(path)
	if !ok {
		return nil, simulation.ErrFileNotFound
	}
	return io.NopCloser(bytes.NewReader(n.data)), nil
}

// Create implements simulation.Disk.
func (d *memoryDisk) Create(path string, access bundle.Access, content io.Reader) error {
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.put(path, d.file(access, data))
	return nil
}

// MakeFolder implements simulation.Disk.
func (d *memoryDisk) MakeFolder(path string, access bundle.Access) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.names[key(path)]
	if !ok {
		d.put(path, d.node(plan.FileDirectory, access))
		return nil
	}
	n.access, n.owner = access, plan.OwnerAdmins
	return nil
}

// Link implements simulation.Disk.
func (d *memoryDisk) Link(path, second string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.regular(path)
	if !ok {
		return simulation.ErrFileNotFound
	}
	d.put(second, n)
	return nil
}

// Rename implements simulation.Disk.
func (d *memoryDisk) Rename(path, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.names[key(path)]
	if !ok {
		return simulation.ErrFileNotFound
	}
	d.put(to, n.node)
	delete(d.names, key(path))
	return nil
}

// Move implements simulation.Disk.
func (d *memoryDisk) Move(path, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	top := key(path)
	for _, k := range slices.Sorted(maps.Keys(d.names)) {
		if k != top && !strings.HasPrefix(k, top+`\`) {
			continue
		}
		n := d.names[k]
		if k == top {
			n.base = bundle.Base(to)
		}
		delete(d.names, k)
		d.names[key(to)+k[len(top):]] = n
	}
	return nil
}

// Remove implements simulation.Disk.
func (d *memoryDisk) Remove(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.names, key(path))
	return nil
}

// Truncate implements simulation.Disk.
func (d *memoryDisk) Truncate(path string) error {
	d.overwrite(path, nil)
	return nil
}

// overwrite changes the contents of a file in place.
func (d *memoryDisk) overwrite(path string, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n, ok := d.regular(path); ok {
		n.data, n.modified = data, d.now()
	}
}

// copy returns another disk with the same files.
func (d *memoryDisk) copy(now func() time.Time) *memoryDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := &memoryDisk{now: now, names: map[string]name{}, serial: d.serial}
	copies := map[*node]*node{}
	for k, n := range d.names {
		if copies[n.node] == nil {
			same := *n.node
			copies[n.node] = &same
		}
		c.names[k] = name{base: n.base, node: copies[n.node]}
	}
	return c
}
