package applier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"wmco/bundle"
	"wmco/bundle/archive"
)

// bundleRecord is a bundle as the host keeps it: what we own, and what its contents are.
type bundleRecord struct {
	Manifest bundle.Manifest   `json:"manifest"`
	Contents []archive.Content `json:"contents,omitempty"`
}

func (r bundleRecord) bundle() bundle.Bundle {
	if len(r.Manifest.Layers) != 2 {
		return bundle.Bundle{}
	}
	return bundle.Bundle{Cluster: r.Manifest.Layers[0].Layer, Node: r.Manifest.Layers[1].Layer}
}

func (r bundleRecord) known() known {
	k := known{}
	for _, c := range r.Contents {
		k[c.Digest] = content{SHA256: c.SHA256, Size: c.Size}
	}
	return k
}

// ledger is what we own on a host. It is written last, when a bundle is applied and confirmed.
type ledger struct {
	Schema int `json:"schema"`
	// Program is the version of the one that wrote it.
	Program string       `json:"program"`
	Time    time.Time    `json:"time"`
	Bundle  bundleRecord `json:"bundle"`
	// Found are entries that were there before us: nothing of ours, they stay when they are no longer wanted.
	Found []bundle.EntryID `json:"found,omitempty"`
	// Folders are those that we made and no bundle names: parents of others.
	Folders []string `json:"folders,omitempty"`
	// Shadows are machine variables that we removed. The service control manager hands out those of its boot until the next
	// one, so services get them as empty for as long (learn.microsoft.com/windows/win32/procthread/environment-variables).
	Shadows []string `json:"shadows,omitempty"`
	// Fresh are machine variables that came since the boot: the service control manager does not have those.
	Fresh []string `json:"fresh,omitempty"`
	// Boot is when the machine had booted, for Shadows and Fresh.
	Boot string `json:"boot,omitempty"`
}

func (l ledger) applied() bundle.Digest { return l.Bundle.Manifest.Digest }

// phase is how far an application has come.
type phase string

const (
	// phaseApplying: actions are being done.
	phaseApplying phase = "applying"
	// phaseReboot: the rest waits for the machine to boot.
	phaseReboot phase = "rebooting"
	// phaseConfirming: everything is healthy, the caller has not confirmed.
	phaseConfirming phase = "confirming"
	// phaseRollback: what was there before is being put back.
	phaseRollback phase = "rolling back"
)

// journal is what is needed to take up or undo an application that was cut. It is there from before the first action until
// after the ledger is written.
type journal struct {
	Schema int          `json:"schema"`
	Phase  phase        `json:"phase"`
	Bundle bundleRecord `json:"bundle"`
	// Earlier are bundles whose applications were cut before this one: their entries are ours too.
	Earlier []bundleRecord `json:"earlier,omitempty"`
	Before  before         `json:"before"`
	// Restart are services that read what is changed and have not been started since.
	Restart []string `json:"restart,omitempty"`
	// Starts are services that are started on the way: they have to be healthy at its end.
	Starts []string `json:"starts,omitempty"`
	// Stale is what belongs to another cluster and has not been removed yet.
	Stale stale `json:"stale,omitzero"`
	// Boot is when the machine had booted, in phaseReboot.
	Boot string `json:"boot,omitempty"`
	// Deadline is when an unconfirmed application is undone, in phaseConfirming.
	Deadline time.Time `json:"deadline,omitzero"`
}

// before is what the entries that change were. Contents are in the store or kept aside. It may hold secrets.
type before struct {
	Files    []fileBefore    `json:"files,omitempty"`
	Settings []settingBefore `json:"settings,omitempty"`
	Services []serviceBefore `json:"services,omitempty"`
}

type fileBefore struct {
	Entry   bundle.EntryID `json:"entry"`
	Path    string         `json:"path"`
	Kind    FileKind       `json:"kind,omitempty"`
	Access  bundle.Access  `json:"access,omitempty"`
	Content content        `json:"content,omitzero"`
}

type settingBefore struct {
	Kind    bundle.EntryKind `json:"kind"`
	Name    string           `json:"name"`
	Value   []byte           `json:"value,omitempty"`
	Present bool             `json:"present,omitempty"`
}

type serviceBefore struct {
	Config  ServiceConfig `json:"config"`
	Present bool          `json:"present,omitempty"`
	Running bool          `json:"running,omitempty"`
}

// records reads and writes what we keep on a host.
type records struct{ host Host }

// maxRecord bounds a ledger or journal, in bytes; that of a full node is under 1 MiB.
const maxRecord = 256 << 20

// errDamaged says that a record is there and cannot be read.
var errDamaged = errors.New("damaged")

// read fills into with a record. One that is not there leaves it alone; one of a newer program is a *bundle.SchemaError.
func (r records) read(ctx context.Context, path, what string, into any) error {
	data, err := readAll(ctx, r.host, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("reading %s: %w", what, err)
	}
	var newer *bundle.SchemaError
	if err := checkSchema(data, what); errors.As(err, &newer) {
		return err
	}
	// Strictly: a record of the same schema has only known fields, anything else is damage.
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("reading %s: %w: %w", what, errDamaged, err)
	}
	return nil
}

func readAll(ctx context.Context, host Reader, path string) ([]byte, error) {
	f, err := host.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxRecord))
	return data, errors.Join(err, f.Close())
}

func (r records) write(ctx context.Context, path string, record any) error {
	data, err := encode(record)
	if err != nil {
		return err
	}
	return r.host.Write(ctx, path, bundle.AccessAdmins, bytes.NewReader(data))
}

// decodeLedger checks what a ledger says of bundles, so that nothing that it names is used unchecked.
func (l ledger) check() error { return l.Bundle.check() }

func (j journal) check() error {
	for _, r := range append([]bundleRecord{j.Bundle}, j.Earlier...) {
		if err := r.check(); err != nil {
			return err
		}
	}
	for _, f := range j.Before.Files {
		if err := checkKept(f.Path); err != nil {
			return err
		}
	}
	for _, path := range j.Stale.Paths {
		if err := checkKept(path); err != nil {
			return err
		}
	}
	return nil
}

// checkKept checks a path that only the journal names. What is above the roots was at most made.
func checkKept(path string) error {
	if err := bundle.CheckPath(path); err != nil {
		return err
	}
	isParent := slices.ContainsFunc(roots(), func(root string) bool { return strings.HasPrefix(bundle.FoldPath(root), bundle.FoldPath(path)+`\`) })
	if !inRoots(path) && !isParent {
		return fmt.Errorf("%w: %s is in none of %s", bundle.ErrPath, path, strings.Join(roots(), ", "))
	}
	return nil
}

func (r bundleRecord) check() error {
	if r.Manifest.Schema == 0 {
		return nil // nothing was applied
	}
	if r.Manifest.Schema > bundle.Schema {
		return &bundle.SchemaError{What: "manifest", Have: r.Manifest.Schema, Want: bundle.Schema}
	}
	if err := r.Manifest.Check(); err != nil {
		return err
	}
	return checkRoots(r.bundle())
}
