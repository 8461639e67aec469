package folderhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"wmco/applier"
	"wmco/applier/hosttest/simulation"
	"wmco/bundle"
)

// Host is a machine under a folder.
type Host struct {
	*simulation.Machine

	mu   sync.Mutex
	tree *os.Root
}

var _ applier.Host = (*Host)(nil)

// Options are what a machine needs beside its folder.
type Options struct {
	// Facts are what a machine that is created says of itself; its HostName is the name of the machine.
	Facts bundle.Facts
	// Now tells the time at which the machine boots; nil is the system's clock.
	Now func() time.Time
}

// ErrExists is what Create gives where a machine is already.
var ErrExists = errors.New("there is a machine already")

// driveFolder is the folder of the one drive.
const driveFolder = "C"

// Create makes a machine with an empty drive under root, which is made if it is not there.
func Create(root string, options Options) (*Host, error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("creating a machine: %w", err)
	}
	h, err := open(root, options)
	if err != nil {
		return nil, err
	}
	if err := h.create(options.Facts); err != nil {
		return nil, errors.Join(fmt.Errorf("creating a machine under %s: %w", root, err), h.Close())
	}
	return h, nil
}

func (h *Host) create(facts bundle.Facts) error {
	if _, err := h.tree.Lstat(fileMachine); err == nil {
		return ErrExists
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := h.tree.MkdirAll(driveFolder, 0o755); err != nil {
		return err
	}
	s := &store{tree: h.tree}
	return s.Save(simulation.NewState(facts, h.Now()))
}

// New opens the machine that Create made under root.
func New(root string, options Options) (*Host, error) {
	h, err := open(root, options)
	if err != nil {
		return nil, err
	}
	if _, err := h.Store.Load(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the machine under %s: %w", root, err), h.Close())
	}
	return h, nil
}

func open(root string, options Options) (*Host, error) {
	tree, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("opening a machine: %w", err)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	h := &Host{tree: tree}
	h.Machine = &simulation.Machine{Mutex: &h.mu, Store: &store{tree: tree}, Files: files{tree}, Now: options.Now}
	return h, nil
}

// Close lets go of the folder.
func (h *Host) Close() error { return h.tree.Close() }

// Reboot implements applier.Machine. The machine has booted when it returns.
func (h *Host) Reboot(ctx context.Context, reason string) error {
	if err := h.Machine.Reboot(ctx, reason); err != nil {
		return err
	}
	return h.Restart(ctx)
}

// files is what the simulation sees of the drive.
type files struct{ tree *os.Root }

func (f files) ReadFile(path string) ([]byte, error) {
	if !simulation.Names(path) {
		return nil, fs.ErrNotExist
	}
	p, err := findOne(f.tree, path)
	if err != nil || p.kind() != applier.FileRegular {
		return nil, errors.Join(err, fs.ErrNotExist)
	}
	return f.tree.ReadFile(p.rel)
}

func (f files) FileID(path string) (string, error) {
	if !simulation.Names(path) {
		return "", nil
	}
	p, err := findOne(f.tree, path)
	if err != nil || p.kind() != applier.FileRegular {
		return "", err
	}
	return fileID(p.info), nil
}

// Snapshot returns what the whole machine is.
func (h *Host) Snapshot(ctx context.Context) (simulation.Snapshot, error) {
	all := map[string]simulation.FileSnapshot{}
	err := fs.WalkDir(h.tree.FS(), driveFolder, func(rel string, d fs.DirEntry, err error) error {
		if err != nil || rel == driveFolder {
			return err
		}
		all[windowsPath(rel)], err = h.fileSnapshot(rel)
		return err
	})
	if err != nil {
		return simulation.Snapshot{}, fmt.Errorf("looking at all files: %w", err)
	}
	var snap simulation.Snapshot
	err = h.Look(ctx, func(s *simulation.State) { snap = s.Snapshot(all) })
	return snap, err
}

func (h *Host) fileSnapshot(rel string) (simulation.FileSnapshot, error) {
	info, err := h.tree.Lstat(rel)
	if err != nil {
		return simulation.FileSnapshot{}, err
	}
	p := place{info: info}
	s := simulation.FileSnapshot{Kind: p.kind(), Access: accessOf(info)}
	if s.Kind == applier.FileRegular {
		data, err := h.tree.ReadFile(rel)
		s.Digest = bundle.Of(data)
		return s, err
	}
	return s, nil
}
