package applier

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"wmco/applier/records"
	"wmco/bundle"
)

// ledgerCopy is the ledger as others may see it: the managed entries, without contents. Digests are those of the manifest,
// which are keyed where they are of secrets; the plain ones, by which the store of contents is named, would let a
// password be guessed.
type ledgerCopy struct {
	Schema int `json:"schema"`
	// Program is the version of the program that wrote the ledger, Time is when.
	Program string    `json:"program"`
	Time    time.Time `json:"time"`
	// Bundle is the one that was applied last, Layers are its layers.
	Bundle  bundle.Digest   `json:"bundle"`
	Layers  []bundle.Digest `json:"layers"`
	Entries []copiedEntry   `json:"entries"`
	// Folders, Shadows, Fresh and Boot are those of records.Ledger.
	Folders []string `json:"folders,omitempty"`
	Shadows []string `json:"shadows,omitempty"`
	Fresh   []string `json:"fresh,omitempty"`
	Boot    string   `json:"boot,omitempty"`
}

// copiedEntry is an entry of the bundle.
type copiedEntry struct {
	Entry bundle.EntryID `json:"entry"`
	// Digest and Size are those of a file or an executable.
	Digest bundle.Digest `json:"digest,omitempty"`
	Size   int64         `json:"size,omitempty"`
	// Found reports whether it was on the host before us: it stays when it is no longer wanted.
	Found bool `json:"found,omitempty"`
}

// CopyLedger brings a copy of the ledger up to date that has no contents. The folder must exist; without a ledger,
// nothing is done. Its error is a *LockedError if a run is changing the host.
//
// Administrators and SYSTEM alone can read the copy. The kubelet, which runs as SYSTEM, serves the files below its folder
// of logs. Host.Write has a new file take the place of the old one, so no reader gets half of one. While the kubelet
// reads the old one, which Go opens without FILE_SHARE_DELETE, Windows refuses that, and after a second of retries the
// error is a *FileError: try again later.
func (e *Engine) CopyLedger(ctx context.Context, path string) (err error) {
	if _, due, err := e.outdatedCopy(ctx, path); !due || err != nil {
		return err
	}
	// Only who has the lock writes: a cleanup would not see a copy that is written while it runs.
	release, err := e.Host.Lock(ctx, e.Owner)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	want, due, err := e.outdatedCopy(ctx, path) // as it is now
	if !due || err != nil {
		return err
	}
	if err := records.ReplaceFile(ctx, e.Host, path, want); err != nil {
		return fmt.Errorf("writing the copy: %w", err)
	}
	return nil
}

// outdatedCopy returns what the copy should be; false if it is that, or if there is no ledger.
func (e *Engine) outdatedCopy(ctx context.Context, path string) (ledgerCopy, bool, error) {
	l, err := records.ReadLedger(ctx, e.Host)
	if err != nil || l.AppliedDigest() == "" {
		return ledgerCopy{}, false, err
	}
	want := copyOfLedger(l)
	return want, !e.holdsCopy(ctx, path, want), nil
}

// holdsCopy reports whether a copy is this one. One that cannot be read is not.
func (e *Engine) holdsCopy(ctx context.Context, path string, want ledgerCopy) bool {
	var have ledgerCopy
	return records.DecodeFile(ctx, e.Host, path, "the copy of the ledger", &have) == nil && reflect.DeepEqual(have, want)
}

func copyOfLedger(l records.Ledger) ledgerCopy {
	c := ledgerCopy{
		Schema: records.Schema, Program: l.Program, Time: l.Time, Bundle: l.AppliedDigest(), Folders: l.Folders,
		Shadows: l.Shadows, Fresh: l.Fresh, Boot: l.Boot,
	}
	for _, m := range l.Bundle.Manifest.Layers {
		c.Layers = append(c.Layers, m.Digest)
		contents := map[bundle.EntryID]copiedEntry{}
		for _, f := range m.Layer.Files {
			contents[bundle.KindFile.ID(f.Path)] = copiedEntry{Digest: f.Digest, Size: f.Size}
		}
		for _, p := range m.Layer.Payload {
			contents[bundle.KindPayload.ID(p.Path)] = copiedEntry{Digest: p.Digest, Size: p.Size}
		}
		for _, id := range m.Layer.IDs() {
			entry := contents[id]
			entry.Entry, entry.Found = id, slices.Contains(l.Found, id)
			c.Entries = append(c.Entries, entry)
		}
	}
	return c
}
