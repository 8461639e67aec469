package hostsim

import (
	"bytes"
	"errors"
	"io"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

// ErrCut is the error of every operation after the applier's process was killed.
var ErrCut = errors.New("the process was killed")

// Faults are the faults beside those of the Script of the host.
type Faults struct {
	// Before is called before each operation that changes something. Its error is the operation's, which does nothing.
	Before func(simulation.Operation) error
	// After is called after such an operation. Its error is the operation's, as when the answer gets lost.
	After func(simulation.Operation) error
}

// steps counts the changes of a storage and fails or cuts them.
type steps struct {
	done   int
	cutAt  int
	failAt map[int]error
	cut    bool
}

// take comes before every change.
func (s *steps) take() error {
	if s.cut || s.done == s.cutAt {
		s.cut = true
		return ErrCut
	}
	err := s.failAt[s.done]
	delete(s.failAt, s.done)
	s.done++
	return err
}

// Steps returns the number of changes so far. One operation may take several steps: a Write makes half a file under
// plan.NewName, then a whole one, moves a program that runs aside, and renames the new one.
func (m *Memory) Steps() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.steps.done
}

// CutAt kills the applier's process before the n-th step from now, 0 being the next: that step and everything later
// returns ErrCut until Revive.
func (m *Memory) CutAt(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps.cutAt = m.steps.done + n
}

// FailAt makes the n-th step from now, 0 being the next, return err without an effect.
func (m *Memory) FailAt(n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps.failAt[m.steps.done+n] = err
}

// Cut reports whether the process was killed.
func (m *Memory) Cut() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.steps.cut
}

// Revive starts a new process: no cut is due, and the lock of the old process is free.
func (m *Memory) Revive() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps.cut, m.steps.cutAt, m.owner = false, -1, ""
}

// alive returns ErrCut after the process was killed.
func (m *Memory) alive() error {
	if m.Cut() {
		return ErrCut
	}
	return nil
}

// effect makes a change that is a step.
func (m *Memory) effect(do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.steps.take(); err != nil {
		return err
	}
	return do()
}

// faultyDisk is the disk as the applier's process sees it: every change is a step.
type faultyDisk struct {
	*memoryDisk
	host *Memory
}

func (d faultyDisk) Stat(paths []string) ([]plan.FileInfo, error) {
	if err := d.host.alive(); err != nil {
		return nil, err
	}
	return d.memoryDisk.Stat(paths)
}

func (d faultyDisk) List(folder string) ([]plan.FileInfo, error) {
	if err := d.host.alive(); err != nil {
		return nil, err
	}
	return d.memoryDisk.List(folder)
}

func (d faultyDisk) Open(path string) (io.ReadCloser, error) {
	if err := d.host.alive(); err != nil {
		return nil, err
	}
	return d.memoryDisk.Open(path)
}

// Create takes two steps, so that a cut may leave half a file.
func (d faultyDisk) Create(path string, access bundle.Access, content io.Reader) error {
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	half := bytes.NewReader(data[:len(data)/2])
	if err := d.host.effect(func() error { return d.memoryDisk.Create(path, access, half) }); err != nil {
		return err
	}
	return d.host.effect(func() error {
		d.overwrite(path, data)
		return nil
	})
}

func (d faultyDisk) MakeFolder(path string, access bundle.Access) error {
	return d.host.effect(func() error { return d.memoryDisk.MakeFolder(path, access) })
}

func (d faultyDisk) Link(path, second string) error {
	return d.host.effect(func() error { return d.memoryDisk.Link(path, second) })
}

func (d faultyDisk) Rename(path, to string) error {
	return d.host.effect(func() error { return d.memoryDisk.Rename(path, to) })
}

func (d faultyDisk) Move(path, to string) error {
	return d.host.effect(func() error { return d.memoryDisk.Move(path, to) })
}

func (d faultyDisk) Remove(path string) error {
	return d.host.effect(func() error { return d.memoryDisk.Remove(path) })
}

func (d faultyDisk) Truncate(path string) error {
	return d.host.effect(func() error { return d.memoryDisk.Truncate(path) })
}
