package folderhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"wmco/applier"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

// Host is a host in a folder.
type Host struct {
	*simulation.Host

	tree *os.Root
}

var _ applier.Host = (*Host)(nil)

// Options are what a host needs besides its folder.
type Options struct {
	// Facts are the facts of a new host. Create needs them, New does not.
	Facts bundle.Facts
	// Now is the clock by which the host boots; nil is the system's.
	Now func() time.Time
	// OnChange, if set, is called before each change of the folder, and in the middle of one that is seen half done:
	// tests end the process there.
	OnChange func()
}

// ErrExists is the error of Create for a folder that has a host.
var ErrExists = errors.New("a simulated host already exists")

// driveFolder is the folder of the drive.
const driveFolder = "C"

// Create makes a host with an empty drive in the folder root, which is created if it does not exist.
func Create(root string, options Options) (*Host, error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("creating a host: %w", err)
	}
	h, err := open(root, options)
	if err != nil {
		return nil, err
	}
	if err := h.create(options.Facts); err != nil {
		return nil, errors.Join(fmt.Errorf("creating a host in %s: %w", root, err), h.Close())
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

// New opens the host that Create made in the folder root.
func New(root string, options Options) (*Host, error) {
	h, err := open(root, options)
	if err != nil {
		return nil, err
	}
	if _, err := h.Storage.State.Load(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the host in %s: %w", root, err), h.Close())
	}
	return h, nil
}

func open(root string, options Options) (*Host, error) {
	tree, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("opening a host: %w", err)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.OnChange == nil {
		options.OnChange = func() {}
	}
	storage := simulation.Storage{State: &store{tree: tree, onChange: options.OnChange}, Files: disk{tree, options.OnChange}}
	return &Host{&simulation.Host{Storage: storage, Own: storage, Now: options.Now}, tree}, nil
}

// Close closes the folder.
func (h *Host) Close() error { return h.tree.Close() }

// Reboot implements applier.Host. The host has booted when it returns.
func (h *Host) Reboot(ctx context.Context, reason string) error {
	if err := h.Host.Reboot(ctx, reason); err != nil {
		return err
	}
	return h.Restart(ctx)
}
