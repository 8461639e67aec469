package simulation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"wmco/applier"
)

// Machine does what an applier.Host does beside files.
type Machine struct {
	// Mutex is held during every operation, and while the stores, Files, Begin and End are called.
	Mutex sync.Locker
	Store Store
	// Own keeps what the machine does by itself and what others do to it; nil is Store.
	Own   Store
	Files Files
	// Now is the clock by which the machine boots.
	Now func() time.Time
	// Begin, where set, is told of every operation that changes something, before it does. Its error is the operation's.
	Begin func(Operation) error
	// End, where set, is told of every such operation that has done its work. Its error is the operation's.
	End func(Operation) error

	looks int
}

// Store keeps the state of a machine.
type Store interface {
	// Load returns the state. The caller may change what it gets.
	Load() (*State, error)
	// Save keeps one step of a change. What it gets is changed further afterwards.
	Save(*State) error
}

// Files is what a machine asks of its files.
type Files interface {
	// ReadFile returns the contents of a file; fs.ErrNotExist when there is none.
	ReadFile(path string) ([]byte, error)
	// FileID returns the ID of a file as applier.FileInfo has it, empty when there is none.
	FileID(path string) (string, error)
}

// Operation is something that was asked of a host and that changes it.
type Operation struct {
	Verb Verb
	// Target is a path, the name of a service or the ID of a setting.
	Target string
}

// Verb is what an operation does.
type Verb string

// The operations of a host.
const (
	VerbWrite    Verb = "write"
	VerbMake     Verb = "make"
	VerbLink     Verb = "link"
	VerbRemove   Verb = "remove"
	VerbTruncate Verb = "truncate"
	VerbPut      Verb = "put"
	VerbDelete   Verb = "delete"
	VerbStart    Verb = "start"
	VerbStop     Verb = "stop"
	VerbSet      Verb = "set"
	VerbUnset    Verb = "unset"
	VerbReboot   Verb = "reboot"
)

// look reads the state.
func (m *Machine) look(ctx context.Context, read func(*State) error) error {
	m.Mutex.Lock()
	defer m.Mutex.Unlock()
	s, err := m.load(ctx, m.Store)
	if err != nil {
		return err
	}
	return read(s)
}

// change begins an operation that saves the state as it goes.
func (m *Machine) change(ctx context.Context, op Operation, do func(*State) error) error {
	m.Mutex.Lock()
	defer m.Mutex.Unlock()
	if m.Begin != nil {
		if err := m.Begin(op); err != nil {
			return err
		}
	}
	s, err := m.load(ctx, m.Store)
	if err != nil {
		return err
	}
	if err := do(s); err != nil || m.End == nil {
		return err
	}
	return m.End(op)
}

// itself lets the machine change without an operation of a host.
func (m *Machine) itself(ctx context.Context, do func(*State, Store) error) error {
	m.Mutex.Lock()
	defer m.Mutex.Unlock()
	s, err := m.load(ctx, m.own())
	if err != nil {
		return err
	}
	return do(s, m.own())
}

func (m *Machine) own() Store {
	if m.Own != nil {
		return m.Own
	}
	return m.Store
}

func (m *Machine) load(ctx context.Context, from Store) (*State, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := from.Load()
	if err != nil {
		return nil, err
	}
	m.looks++
	s.settle(m.looks)
	return s, nil
}

// Runs tells whether the file of that ID is a program that runs. The caller holds the Mutex.
func (m *Machine) Runs(ctx context.Context, file string) (bool, error) {
	s, err := m.load(ctx, m.Store)
	if err != nil {
		return false, err
	}
	return file != "" && s.runs(file), nil
}

// Look reads the state, which nobody may change. The caller does not hold the Mutex.
func (m *Machine) Look(ctx context.Context, read func(*State)) error {
	return m.look(ctx, func(s *State) error {
		read(s)
		return nil
	})
}

// Edit changes the machine behind the host's back.
func (m *Machine) Edit(ctx context.Context, change func(*State)) error {
	return m.itself(ctx, func(s *State, own Store) error {
		change(s)
		return own.Save(s)
	})
}

// holds tells whether all conditions do.
func (m *Machine) holds(conditions []Condition) (bool, error) {
	for _, c := range conditions {
		data, err := m.Files.ReadFile(c.File)
		absent := errors.Is(err, fs.ErrNotExist)
		if err != nil && !absent {
			return false, fmt.Errorf("reading %s: %w", c.File, err)
		}
		text := string(data)
		if absent && (c.Lacks == "" || c.Contains != "") ||
			c.Contains != "" && !strings.Contains(text, c.Contains) ||
			c.Lacks != "" && strings.Contains(text, c.Lacks) {
			return false, nil
		}
	}
	return true, nil
}

// asServiceError tells what a service did apart from what became of the machine's store.
func asServiceError(name, doing string, err error) error {
	var code SystemError
	if errors.As(err, &code) {
		return &applier.ServiceError{Name: name, Doing: doing, Err: err}
	}
	return err
}
