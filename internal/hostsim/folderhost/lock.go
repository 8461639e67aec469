package folderhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"wmco/applier"
)

// Lock implements applier.Host. It does not wait. The system releases the lock of a process that ends.
func (h *Host) Lock(ctx context.Context, owner string) (func() error, error) {
	if err := errors.Join(ctx.Err(), h.CheckLock()); err != nil {
		return nil, err
	}
	f, err := h.tree.OpenFile(fileLock, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the host: %w", err)
	}
	if err := take(f, owner); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error { return errors.Join(f.Truncate(0), f.Close()) }, nil
}

// take locks the file and writes the owner into it.
func take(f *os.File, owner string) error {
	ours, err := tryLock(f)
	if err != nil {
		return fmt.Errorf("locking the host: %w", err)
	}
	if !ours {
		other, err := io.ReadAll(f)
		if err != nil {
			return fmt.Errorf("reading the owner of the lock: %w", err)
		}
		return &applier.LockedError{Owner: string(other)}
	}
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("locking the host: %w", err)
	}
	if _, err := f.WriteAt([]byte(owner), 0); err != nil {
		return fmt.Errorf("locking the host: %w", err)
	}
	return nil
}
