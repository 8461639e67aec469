package light

import (
	"context"
	"fmt"
	"io"
	"sync"

	"wmco/bundle"
	"wmco/bundle/archive"
)

// Executables are those that a host has, without their bytes: a thousand hosts would have 123 GB. Each is verified as
// when a host receives it. The zero value is a host without any.
type Executables struct {
	mu  sync.Mutex
	has map[bundle.Digest]bool
}

// Stage is that of a fetcher (applier/agent/executables).
func (x *Executables) Stage(_ context.Context, all []archive.Content, from archive.Source) (missing []bundle.Digest, err error) {
	for _, c := range from.Contents() {
		if err := x.receive(c, from); err != nil {
			return nil, err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range all {
		if !x.has[c.Digest] {
			missing = append(missing, c.Digest)
		}
	}
	return missing, nil
}

// receive reads an executable, and checks its size and digest before it counts.
func (x *Executables) receive(c archive.Content, from archive.Source) error {
	stored, err := from.Open(c.SHA256)
	if err != nil {
		return err
	}
	defer stored.Close() //nolint:errcheck // it was only read
	raw := archive.Decode(stored, c)
	defer raw.Close() //nolint:errcheck // it was only read
	if _, err := io.Copy(io.Discard, raw); err != nil {
		return fmt.Errorf("keeping %s: %w", c.Digest.Short(), err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.has == nil {
		x.has = map[bundle.Digest]bool{}
	}
	x.has[c.Digest] = true
	return nil
}
