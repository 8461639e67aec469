package folderhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"wmco/applier"
	"wmco/applier/hosttest/simulation"
	"wmco/bundle"
)

// Host is a machine under a folder.
type Host struct {
	*simulation.Host

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
	return h.Storage.State.Save(simulation.NewState(facts, h.Now()))
}

// New opens the machine that Create made under root.
func New(root string, options Options) (*Host, error) {
	h, err := open(root, options)
	if err != nil {
		return nil, err
	}
	if _, err := h.Storage.State.Load(); err != nil {
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
	storage := simulation.Storage{State: &store{tree: tree}, Files: disk{tree}}
	return &Host{&simulation.Host{Storage: storage, Own: storage, Now: options.Now}, tree}, nil
}

// Close lets go of the folder.
func (h *Host) Close() error { return h.tree.Close() }

// Reboot implements applier.Machine. The machine has booted when it returns.
func (h *Host) Reboot(ctx context.Context, reason string) error {
	if err := h.Host.Reboot(ctx, reason); err != nil {
		return err
	}
	return h.Restart(ctx)
}
