package simulation

import (
	"bytes"
	"context"
	"io/fs"
	"slices"

	"wmco/applier/plan"
	"wmco/bundle"
)

// Live is the report of a program that really runs in place of a service's. A service without it follows the
// Script.
type Live struct {
	// Process is the one that reported: nothing is known about a later one.
	Process Process `json:"process"`
	// Ended is true for a process that has ended without a stop.
	Ended bool `json:"ended,omitempty"`
	// Targets are the targets of probes that only this program answers, Answers those that it answers now.
	Targets []string `json:"targets,omitempty"`
	Answers []string `json:"answers,omitempty"`
}

// ended reports whether the program of a running service has ended without a stop.
func (s *State) ended(key string, svc Service) bool {
	live, ok := s.Live[key]
	return ok && live.Ended && s.runsAs(key, live.Process) && svc.Status == plan.ServiceRunning
}

// runsAs reports whether a service has that process.
func (s *State) runsAs(key string, p Process) bool {
	processes := s.Services[key].Processes
	return len(processes) > 0 && processes[0] == p
}

// liveAnswers reports whether the program that alone answers a target does. Known is false if there is no such program.
func (s *State) liveAnswers(target string) (answers, known bool) {
	for key, live := range s.Live {
		if !slices.Contains(live.Targets, target) {
			continue
		}
		return s.Services[key].Status == plan.ServiceRunning && s.runsAs(key, live.Process) && slices.Contains(live.Answers, target), true
	}
	return false, false
}

// StartByItself starts a service as the service control manager does after a failure, without an operation of the host.
func (h *Host) StartByItself(ctx context.Context, name string) error {
	return h.itself(ctx, func(s *State) error {
		return asServiceError(name, "starting", h.start(s, name, &starting{store: h.Own.State}))
	})
}

// ReadFile returns what a program of the host reads. The error is fs.ErrNotExist if there is no such file.
func (h *Host) ReadFile(path string) ([]byte, error) {
	text, err := h.readFile(path)
	if err != nil {
		err = &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return []byte(text), err
}

// WriteFile replaces a file as a program of the host does, and makes the folders above it. It is no operation of the
// host.
func (h *Host) WriteFile(ctx context.Context, path string, access bundle.Access, data []byte) error {
	if err := check(ctx, path); err != nil {
		return err
	}
	if err := h.refusesWrite(path); err != nil {
		return err
	}
	if err := h.makeFolders(bundle.Dir(path)); err != nil {
		return FileError(path, err)
	}
	files, beside := h.Own.Files, path+".writing"
	info, err := statOne(files, beside)
	if err == nil && info.Kind != plan.FileAbsent {
		err = files.Remove(beside) // of a write that was cut
	}
	if err != nil {
		return FileError(path, err)
	}
	if err := files.Create(beside, access, bytes.NewReader(data)); err != nil {
		return FileError(path, err)
	}
	return FileError(path, files.Rename(beside, path))
}

// refusesWrite returns why nothing is written at a path.
func (h *Host) refusesWrite(path string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.Own.State.Load()
	if err == nil {
		err = s.Script.Refuses(path)
	}
	return err
}

// RemoveFile removes a file as a program of the host does. One that does not exist is no error.
func (h *Host) RemoveFile(path string) error {
	info, err := statOne(h.Own.Files, path)
	if err == nil && info.Kind != plan.FileAbsent {
		err = h.Own.Files.Remove(path)
	}
	return FileError(path, err)
}

// makeFolders makes a folder and those above it.
func (h *Host) makeFolders(folder string) error {
	info, err := statOne(h.Own.Files, folder)
	if err != nil || info.Kind == plan.FileDirectory {
		return err
	}
	if err := h.makeFolders(bundle.Dir(folder)); err != nil {
		return err
	}
	return h.Own.Files.MakeFolder(folder, bundle.AccessUsers)
}
