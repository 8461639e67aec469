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
	"time"

	"wmco/internal/hostsim/simulation"
)

// The files of a host below its root, except the drive.
const (
	dirMachine      = ".machine"
	dirServices     = dirMachine + "/services"
	dirCertificates = dirMachine + "/certificates"
	fileMachine     = dirMachine + "/machine.json"
	fileFacts       = dirMachine + "/facts.json"
	fileProcesses   = dirMachine + "/processes.json"
	fileBehaviour   = dirMachine + "/behaviour.json"
	fileLive        = dirMachine + "/live.json"
	fileLock        = dirMachine + "/lock"
)

// store keeps the state of a host in files. Save writes only those that differ.
type store struct {
	tree     *os.Root
	onChange func()
	// state is the state when the files were last read or written, and stamps are their stamps then: a difference means
	// that they have to be read again. Both are nil before.
	state  *simulation.State
	stamps map[string]stamp
	// folders are the times when names in the folders changed, as of lookedAt.
	folders  map[string]time.Time
	lookedAt time.Time
}

const (
	// lookAgain is when every document is looked at again: a person may have edited one in its place.
	lookAgain = time.Second
	// timesDiffer is more than the distance of two different times of a file system.
	timesDiffer = 50 * time.Millisecond
)

// stamp changes when a file is written. Save renames a new file to the path, so its ID changes.
type stamp struct {
	id       string
	size     int64
	modified int64
}

// Load implements simulation.Store.
func (s *store) Load() (*simulation.State, error) {
	folders, at := s.folderTimes(), time.Now()
	if s.isCurrent(folders, at) {
		return s.state.Clone(), nil
	}
	stamps, err := s.look()
	if err != nil {
		return nil, fmt.Errorf("reading the state: %w", err)
	}
	s.folders, s.lookedAt = folders, at
	if s.state == nil || !maps.Equal(stamps, s.stamps) {
		if s.state, err = s.read(stamps); err != nil {
			return nil, err
		}
		s.stamps = stamps
	}
	return s.state.Clone(), nil
}

// folderTimes returns when names in the folders changed last, as Save renames, and when the file was that people edit.
func (s *store) folderTimes() map[string]time.Time {
	times := map[string]time.Time{}
	for _, dir := range []string{dirMachine, dirServices, dirCertificates, fileBehaviour} {
		if info, err := s.tree.Stat(dir); err == nil {
			times[dir] = info.ModTime()
		}
	}
	return times
}

// isCurrent reports whether no process has saved since the documents were looked at.
func (s *store) isCurrent(folders map[string]time.Time, now time.Time) bool {
	if s.stamps == nil || now.Sub(s.lookedAt) > lookAgain || !maps.Equal(folders, s.folders) {
		return false
	}
	for _, changed := range folders {
		if s.lookedAt.Sub(changed) < timesDiffer {
			return false // what was saved in the same moment does not show
		}
	}
	return true
}

// look returns the stamps of all documents by path.
func (s *store) look() (map[string]stamp, error) {
	found := map[string]stamp{}
	for _, dir := range []string{dirMachine, dirServices, dirCertificates} {
		err := s.stamp(dir, found)
		if errors.Is(err, fs.ErrNotExist) && dir != dirMachine {
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// stamp adds the stamps of the documents in a folder.
func (s *store) stamp(dir string, found map[string]stamp) error {
	at, err := s.tree.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer at.Close() //nolint:errcheck // only looked into
	names, err := readNames(at, ".")
	if err != nil {
		return err
	}
	for _, name := range names {
		if !isDocument(name) {
			continue
		}
		info, err := at.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process has just removed it
		}
		if err != nil {
			return err
		}
		found[dir+"/"+name] = stamp{fileID(info), info.Size(), info.ModTime().UnixNano()}
	}
	return nil
}

// read returns the state in the documents.
func (s *store) read(stamps map[string]stamp) (*simulation.State, error) {
	found := make(map[string][]byte, len(stamps))
	for rel := range stamps {
		data, err := s.tree.ReadFile(rel)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process has just removed it
		}
		if err != nil {
			return nil, fmt.Errorf("reading the state: %w", err)
		}
		found[rel] = data
	}
	return decode(found)
}

func isDocument(rel string) bool {
	return path.Ext(rel) == ".json" || path.Ext(rel) == ".der"
}

// Save implements simulation.Store. It writes fileMachine first: a boot that is cut after it has stopped all services,
// and pending settings stay pending.
func (s *store) Save(state *simulation.State) error {
	documents, err := encode(state)
	if err != nil {
		return err
	}
	before, err := s.before()
	if err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	s.stamps = nil
	for _, rel := range inOrder(documents, before) {
		if bytes.Equal(documents[rel], before[rel]) {
			continue
		}
		if err := s.put(rel, documents[rel]); err != nil {
			return fmt.Errorf("writing the state: %w", err)
		}
	}
	s.state = state.Clone()
	return nil
}

// before returns the last state as Save would write it, so that a file that a person formatted differently stays as it
// is.
func (s *store) before() (map[string][]byte, error) {
	if s.state == nil {
		return nil, s.makeFolders()
	}
	return encode(s.state)
}

// inOrder returns the paths of all documents before and after, fileMachine first.
func inOrder(documents, before map[string][]byte) []string {
	all := map[string]bool{}
	for rel := range documents {
		all[rel] = true
	}
	for rel := range before {
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

// put replaces a document, or removes it if data is nil.
func (s *store) put(rel string, data []byte) error {
	s.onChange()
	if data == nil {
		return s.tree.Remove(rel)
	}
	beside := rel + ".new"
	if err := s.tree.WriteFile(beside, data, 0o600); err != nil {
		return err
	}
	s.onChange()
	return s.tree.Rename(beside, rel)
}
