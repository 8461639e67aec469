package hosttest

import (
	"strings"

	"wmco/applier"
	"wmco/bundle"
)

// Place puts a file there behind the host's back, with the folders above it. A file that is there gets these contents in
// place, as an editor writes them.
func (m *Memory) Place(path string, access bundle.Access, data string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.placeFolders(parent(path))
	if n, ok := m.names[bundle.FoldPath(path)]; ok && n.kind == applier.FileRegular {
		n.data, n.access, n.modified = []byte(data), access, m.Now()
		return
	}
	m.put(path, m.file(access, []byte(data)))
}

// Falsify changes what a file holds behind the host's back, and leaves its time as it was.
func (m *Memory) Falsify(path, data string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n, ok := m.names[bundle.FoldPath(path)]; ok {
		n.data = []byte(data)
	}
}

// PlaceFolder makes a folder behind the host's back, with those above it.
func (m *Memory) PlaceFolder(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.placeFolders(path)
}

func (m *Memory) placeFolders(path string) {
	if !strings.Contains(path, `\`) || m.has(path) {
		return
	}
	m.placeFolders(parent(path))
	m.put(path, m.newNode(applier.FileDirectory, bundle.AccessUsers))
}

// PlaceLink puts a link there behind the host's back.
func (m *Memory) PlaceLink(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(path, m.newNode(applier.FileOther, applier.AccessOther))
}

// Discard removes what stands at path behind the host's back, with everything below.
func (m *Memory) Discard(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	top := bundle.FoldPath(path)
	for folded := range m.names {
		if folded == top || strings.HasPrefix(folded, top+`\`) {
			delete(m.names, folded)
		}
	}
}

// SetAccess changes who may read what stands at path, behind the host's back.
func (m *Memory) SetAccess(path string, access bundle.Access) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n, ok := m.names[bundle.FoldPath(path)]; ok {
		n.access = access
	}
}

// Contents returns what a file holds, also after a cut, and whether it is there.
func (m *Memory) Contents(path string) (data string, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.names[bundle.FoldPath(path)]
	if !ok || n.kind != applier.FileRegular {
		return "", false
	}
	return string(n.data), true
}
