package hostsim

import (
	"strings"

	"wmco/applier/plan"
	"wmco/bundle"
)

// Place writes a file as other programs do, and makes the folders above it. A file that is there is written in place,
// as an editor does.
func (m *Memory) Place(path string, access bundle.Access, data string) {
	m.PlaceFolder(bundle.Dir(path))
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	if n, ok := m.disk.regular(path); ok {
		n.data, n.access, n.modified = []byte(data), access, m.Now()
		return
	}
	m.disk.put(path, m.disk.file(access, []byte(data)))
}

// Plant writes a file as a user does who is no administrator, and makes the folders above it. What was not there before
// is the user's, who may change it.
func (m *Memory) Plant(path, data string) {
	m.PlantFolder(bundle.Dir(path))
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	n := m.disk.file(plan.AccessOther, []byte(data))
	n.owner = plan.OwnerOther
	m.disk.put(path, n)
}

// PlantFolder makes a folder as a user does who is no administrator, and those above it.
func (m *Memory) PlantFolder(path string) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	m.plantFolders(path)
}

func (m *Memory) plantFolders(path string) {
	if m.disk.info(path).Kind != plan.FileAbsent {
		return
	}
	m.plantFolders(bundle.Dir(path))
	n := m.disk.node(plan.FileDirectory, plan.AccessOther)
	n.owner = plan.OwnerOther
	m.disk.put(path, n)
}

// Falsify changes the contents of a file and keeps its time.
func (m *Memory) Falsify(path, data string) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	if n, ok := m.disk.regular(path); ok {
		n.data = []byte(data)
	}
}

// PlaceFolder makes a folder, and those above it.
func (m *Memory) PlaceFolder(path string) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	m.placeFolders(path)
}

func (m *Memory) placeFolders(path string) {
	if m.disk.info(path).Kind != plan.FileAbsent {
		return
	}
	m.placeFolders(bundle.Dir(path))
	m.disk.put(path, m.disk.node(plan.FileDirectory, bundle.AccessUsers))
}

// PlaceLink makes a link.
func (m *Memory) PlaceLink(path string) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	m.disk.put(path, m.disk.node(plan.FileOther, plan.AccessOther))
}

// Discard removes the entry at path, with everything below.
func (m *Memory) Discard(path string) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	top := key(path)
	for k := range m.disk.names {
		if k == top || strings.HasPrefix(k, top+`\`) {
			delete(m.disk.names, k)
		}
	}
}

// SetAccess changes who may read the entry at path.
func (m *Memory) SetAccess(path string, access bundle.Access) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	if n, ok := m.disk.names[key(path)]; ok {
		n.access = access
	}
}

// SetOwner changes the owner of the entry at path. Another owner may give any access to it.
func (m *Memory) SetOwner(path string, owner plan.Owner) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	if n, ok := m.disk.names[key(path)]; ok {
		n.owner, n.access = owner, plan.AccessOther
	}
}

// Contents returns the contents of a file, also after a cut, and whether there is one.
func (m *Memory) Contents(path string) (data string, ok bool) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	n, ok := m.disk.regular(path)
	if !ok {
		return "", false
	}
	return string(n.data), true
}
