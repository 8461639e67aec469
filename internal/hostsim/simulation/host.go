package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"time"

	"wmco/applier"
	"wmco/applier/plan"
)

// Host is a simulated Windows host: everything of applier.Host except Lock.
type Host struct {
	// Storage is used by the operations of the host.
	Storage Storage
	// Own is used for actions of Windows itself and of other programs. It may be the same as Storage.
	Own Storage
	// Now is the clock by which the host boots.
	Now func() time.Time
	// Begin, where set, is called before every operation that changes something. Its error is the operation's.
	Begin func(Operation) error
	// End, where set, is called after every such operation that succeeded. Its error is the operation's.
	End func(Operation) error

	// mu guards the state in the storages. Operations on files do not hold it while they read contents, which may come
	// from the same host.
	mu    sync.Mutex
	looks int
}

// Storage is where a host keeps what it is.
type Storage struct {
	State Store
	Files Disk
}

// Store keeps the state of a host.
type Store interface {
	// Load returns the state. The caller may change what it gets.
	Load() (*State, error)
	// Save keeps one step of a change. The caller may change the state further afterwards.
	Save(*State) error
}

// Operation is a call of a host's method that changes something.
type Operation struct {
	Verb Verb
	// Target is a path, the name of a service or the ID of a setting.
	Target string
}

// Verb names a method of a host.
type Verb string

// The operations of a host.
const (
	VerbWrite    Verb = "write"
	VerbMake     Verb = "make"
	VerbLink     Verb = "link"
	VerbMove     Verb = "move"
	VerbRemove   Verb = "remove"
	VerbTruncate Verb = "truncate"
	VerbPut      Verb = "put"
	VerbDelete   Verb = "delete"
	VerbStart    Verb = "start"
	VerbStop     Verb = "stop"
	VerbRetire   Verb = "retire"
	VerbSet      Verb = "set"
	VerbUnset    Verb = "unset"
	VerbReboot   Verb = "reboot"
)

// look reads the state.
func (h *Host) look(ctx context.Context, read func(*State) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.load(ctx, h.Storage.State)
	if err != nil {
		return err
	}
	return read(s)
}

// change does an operation that saves the state as it goes.
func (h *Host) change(ctx context.Context, op Operation, do func(*State) error) error {
	return h.operate(op, func() error { return h.look(ctx, do) })
}

// operate does an operation between Begin and End.
func (h *Host) operate(op Operation, do func() error) error {
	if h.Begin != nil {
		if err := h.Begin(op); err != nil {
			return err
		}
	}
	if err := do(); err != nil || h.End == nil {
		return err
	}
	return h.End(op)
}

// itself changes the state without an operation of the host.
func (h *Host) itself(ctx context.Context, do func(*State) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.load(ctx, h.Own.State)
	if err != nil {
		return err
	}
	return do(s)
}

func (h *Host) load(ctx context.Context, from Store) (*State, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := from.Load()
	if err != nil {
		return nil, err
	}
	h.looks++
	s.settle(h.looks)
	return s, nil
}

// Look reads the state, which read must not change.
func (h *Host) Look(ctx context.Context, read func(*State)) error {
	return h.look(ctx, func(s *State) error {
		read(s)
		return nil
	})
}

// Edit changes the state as other programs do, without an operation of the host.
func (h *Host) Edit(ctx context.Context, change func(*State)) error {
	return h.itself(ctx, func(s *State) error {
		change(s)
		return h.Own.State.Save(s)
	})
}

// holds reports whether all conditions hold.
func (h *Host) holds(conditions []Condition) (bool, error) {
	for _, c := range conditions {
		text, err := h.readFile(c.File)
		absent := errors.Is(err, fs.ErrNotExist)
		if err != nil && !absent {
			return false, fmt.Errorf("reading %s: %w", c.File, err)
		}
		if absent && (c.Lacks == "" || c.Contains != "") ||
			c.Contains != "" && !strings.Contains(text, c.Contains) ||
			c.Lacks != "" && strings.Contains(text, c.Lacks) {
			return false, nil
		}
	}
	return true, nil
}

// readFile returns what a program of the host reads. The error is fs.ErrNotExist if there is no such file.
func (h *Host) readFile(path string) (string, error) {
	if id, err := h.fileID(path); err != nil || id == "" {
		return "", errors.Join(err, fs.ErrNotExist)
	}
	f, err := h.Own.Files.Open(path)
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(f)
	return string(data), errors.Join(err, f.Close())
}

// fileID returns the ID of a file, empty if there is none. The path may be any text, such as an argument of a program.
func (h *Host) fileID(path string) (string, error) {
	if !isPath(path) {
		return "", nil
	}
	info, err := statOne(h.Own.Files, path)
	if err != nil || info.Kind != plan.FileRegular {
		return "", err
	}
	return info.ID, nil
}

// asServiceError wraps what a service did; errors of the storage stay as they are.
func asServiceError(name, doing string, err error) error {
	var code SystemError
	if errors.As(err, &code) {
		return &applier.ServiceError{Name: name, Doing: doing, Err: err}
	}
	return err
}
