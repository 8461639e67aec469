package hostsim

import (
	"context"
	"errors"
	"io"
	"sync"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
)

// Calls is a host of which one call goes wrong: of its methods, of what they return, and of each read of a file. It
// counts from 0.
type Calls struct {
	Host  applier.Host
	Fault CallFault
	// At is the call that goes wrong; less than 0 is none.
	At int

	mu   sync.Mutex
	n    int
	dead bool
}

var _ applier.Host = (*Calls)(nil)

// CallFault is how a call goes wrong.
type CallFault string

const (
	// CallFails does nothing and returns ErrCall.
	CallFails CallFault = "fails"
	// CallKills kills the process before the call does anything.
	CallKills CallFault = "kills"
	// CallKillsAfter kills the process when the call has done everything.
	CallKillsAfter CallFault = "kills after"
)

// ErrCall is an error of the operating system that no host knows.
var ErrCall = errors.New("input/output error")

// Count is the number of calls so far.
func (c *Calls) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// Dead reports whether the process was killed.
func (c *Calls) Dead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// call makes a call.
func (c *Calls) call(do func() error) error {
	c.mu.Lock()
	now := c.n == c.At
	c.n++
	c.dead = c.dead || now && c.Fault == CallKills
	dead := c.dead
	c.mu.Unlock()
	switch {
	case dead:
		return ErrCut
	case now && c.Fault == CallFails:
		return ErrCall
	}
	err := do()
	if now {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.dead = true
		return ErrCut
	}
	return err
}

// answer makes a call that returns something.
func answer[T any](c *Calls, do func() (T, error)) (T, error) {
	var got T
	err := c.call(func() (err error) {
		got, err = do()
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return got, nil
}

// Lock implements applier.Host.
func (c *Calls) Lock(ctx context.Context, owner string) (func() error, error) {
	release, err := answer(c, func() (func() error, error) { return c.Host.Lock(ctx, owner) })
	if err != nil {
		return nil, err
	}
	return func() error { return c.call(release) }, nil
}

// Stat implements applier.Reader.
func (c *Calls) Stat(ctx context.Context, paths []string) ([]plan.FileInfo, error) {
	return answer(c, func() ([]plan.FileInfo, error) { return c.Host.Stat(ctx, paths) })
}

// List implements applier.Reader.
func (c *Calls) List(ctx context.Context, directory string) ([]plan.FileInfo, error) {
	return answer(c, func() ([]plan.FileInfo, error) { return c.Host.List(ctx, directory) })
}

// Open implements applier.Reader.
func (c *Calls) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	f, err := answer(c, func() (io.ReadCloser, error) { return c.Host.Open(ctx, path) })
	if err != nil {
		return nil, err
	}
	return calledFile{f, c}, nil
}

// Free implements applier.Reader.
func (c *Calls) Free(ctx context.Context) (int64, error) {
	return answer(c, func() (int64, error) { return c.Host.Free(ctx) })
}

// calledFile is a file of which each read is a call.
type calledFile struct {
	io.ReadCloser
	calls *Calls
}

func (f calledFile) Read(p []byte) (int, error) {
	return readAnswer(f.calls, func() (int, error) { return f.ReadCloser.Read(p) })
}

// readAnswer is answer for what comes with io.EOF.
func readAnswer(c *Calls, do func() (int, error)) (int, error) {
	n := 0
	err := c.call(func() (err error) {
		n, err = do()
		return err
	})
	if errors.Is(err, ErrCall) || errors.Is(err, ErrCut) {
		return 0, err
	}
	return n, err
}

// Write implements applier.Writer.
func (c *Calls) Write(ctx context.Context, path string, access bundle.Access, content io.Reader) error {
	return c.call(func() error { return c.Host.Write(ctx, path, access, content) })
}

// MakeDirectory implements applier.Writer.
func (c *Calls) MakeDirectory(ctx context.Context, path string, access bundle.Access) error {
	return c.call(func() error { return c.Host.MakeDirectory(ctx, path, access) })
}

// Link implements applier.Writer.
func (c *Calls) Link(ctx context.Context, path, second string) error {
	return c.call(func() error { return c.Host.Link(ctx, path, second) })
}

// Move implements applier.Writer.
func (c *Calls) Move(ctx context.Context, path, to string) error {
	return c.call(func() error { return c.Host.Move(ctx, path, to) })
}

// Remove implements applier.Writer.
func (c *Calls) Remove(ctx context.Context, path string) error {
	return c.call(func() error { return c.Host.Remove(ctx, path) })
}

// CopyTruncate implements applier.Writer.
func (c *Calls) CopyTruncate(ctx context.Context, path, to string) error {
	return c.call(func() error { return c.Host.CopyTruncate(ctx, path, to) })
}

// Services implements applier.Services.
func (c *Calls) Services(ctx context.Context, names []string) ([]plan.ServiceState, error) {
	return answer(c, func() ([]plan.ServiceState, error) { return c.Host.Services(ctx, names) })
}

// PutService implements applier.Services.
func (c *Calls) PutService(ctx context.Context, config plan.ServiceConfig) error {
	return c.call(func() error { return c.Host.PutService(ctx, config) })
}

// ServiceProcess implements applier.Services.
func (c *Calls) ServiceProcess(ctx context.Context, name string) (int, error) {
	return answer(c, func() (int, error) { return c.Host.ServiceProcess(ctx, name) })
}

// DeleteService implements applier.Services.
func (c *Calls) DeleteService(ctx context.Context, name string) error {
	return c.call(func() error { return c.Host.DeleteService(ctx, name) })
}

// StartService implements applier.Services.
func (c *Calls) StartService(ctx context.Context, name string) error {
	return c.call(func() error { return c.Host.StartService(ctx, name) })
}

// StopService implements applier.Services.
func (c *Calls) StopService(ctx context.Context, name string) error {
	return c.call(func() error { return c.Host.StopService(ctx, name) })
}

// RetireService implements applier.Services.
func (c *Calls) RetireService(ctx context.Context, name string) error {
	return c.call(func() error { return c.Host.RetireService(ctx, name) })
}

// Settings implements applier.Machine.
func (c *Calls) Settings(ctx context.Context, names []plan.Setting) ([]plan.Setting, error) {
	return answer(c, func() ([]plan.Setting, error) { return c.Host.Settings(ctx, names) })
}

// Set implements applier.Machine.
func (c *Calls) Set(ctx context.Context, setting plan.Setting) error {
	return c.call(func() error { return c.Host.Set(ctx, setting) })
}

// Probe implements applier.Machine.
func (c *Calls) Probe(ctx context.Context, probe bundle.Probe) error {
	return c.call(func() error { return c.Host.Probe(ctx, probe) })
}

// Facts implements applier.Machine.
func (c *Calls) Facts(ctx context.Context) (bundle.Facts, error) {
	return answer(c, func() (bundle.Facts, error) { return c.Host.Facts(ctx) })
}

// Reboot implements applier.Machine.
func (c *Calls) Reboot(ctx context.Context, reason string) error {
	return c.call(func() error { return c.Host.Reboot(ctx, reason) })
}
