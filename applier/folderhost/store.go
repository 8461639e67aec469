package folderhost

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	"wmco/applier/simulation"
)

// Where the machine is kept, below its root.
const (
	dirMachine      = ".machine"
	dirServices     = dirMachine + "/services"
	dirCertificates = dirMachine + "/certificates"
	fileMachine     = dirMachine + "/machine.json"
	fileFacts       = dirMachine + "/facts.json"
	fileProcesses   = dirMachine + "/processes.json"
	fileBehaviour   = dirMachine + "/behaviour.json"
	fileLock        = dirMachine + "/lock"
)

// store keeps the state of a machine in files, of which it writes those that a change is about.
type store struct {
	tree *os.Root
	// loaded is what the files last read or written mean, as this program writes it: a file that a person wrote in another
	// form is left as it is.
	loaded map[string][]byte
}

// Load implements simulation.Store.
func (s *store) Load() (*simulation.State, error) {
	found := map[string][]byte{}
	for _, dir := range []string{dirMachine, dirServices, dirCertificates} {
		if err := s.read(dir, found); err != nil {
			return nil, fmt.Errorf("reading the machine: %w", err)
		}
	}
	state, err := decode(found)
	if err != nil {
		return nil, err
	}
	s.loaded, err = encode(state)
	return state, err
}

// read adds the documents in a folder.
func (s *store) read(dir string, found map[string][]byte) error {
	names, err := readNames(s.tree, dir)
	if errors.Is(err, fs.ErrNotExist) && dir != dirMachine {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		rel := dir + "/" + name
		if !isDocument(rel) {
			continue
		}
		data, err := s.tree.ReadFile(rel)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process has just removed it
		}
		if err != nil {
			return err
		}
		found[rel] = data
	}
	return nil
}

func isDocument(rel string) bool {
	return path.Ext(rel) == ".json" || path.Ext(rel) == ".der"
}

// Save implements simulation.Store. The file of the machine itself comes first: a boot that was cut there has stopped
// everything, and what was pending stays so.
func (s *store) Save(state *simulation.State) error {
	documents, err := encode(state)
	if err != nil {
		return err
	}
	if s.loaded == nil {
		if err := s.makeFolders(); err != nil {
			return fmt.Errorf("writing the machine: %w", err)
		}
	}
	for _, rel := range inOrder(documents, s.loaded) {
		if err := s.put(rel, documents[rel]); err != nil {
			return fmt.Errorf("writing the machine: %w", err)
		}
	}
	s.loaded = documents
	return nil
}

// inOrder are the documents that are there before or after, that of the machine first.
func inOrder(documents, loaded map[string][]byte) []string {
	all := map[string]bool{}
	for rel := range documents {
		all[rel] = true
	}
	for rel := range loaded {
		all[rel] = true
	}
	delete(all, fileMachine)
	return append([]string{fileMachine}, slices.Sorted(maps.Keys(all))...)
}

func (s *store) makeFolders() error {
	for _, dir := range []string{dirServices, dirCertificates} {
		if err := s.tree.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// put makes a document what it should be; nil is absent.
func (s *store) put(rel string, data []byte) error {
	switch {
	case bytes.Equal(data, s.loaded[rel]):
		return nil
	case data == nil:
		return errors.Join(s.tree.Remove(rel), syncFolder(s.tree, path.Dir(rel)))
	}
	beside := rel + ".new"
	if err := s.write(beside, data); err != nil {
		return err
	}
	if err := s.tree.Rename(beside, rel); err != nil {
		return err
	}
	return syncFolder(s.tree, path.Dir(rel))
}

func (s *store) write(rel string, data []byte) error {
	f, err := s.tree.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
