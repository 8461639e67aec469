package records

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"wmco/applier/plan"
	"wmco/bundle"
)

// encodeJSON returns indented JSON without HTML escapes, with a newline at the end.
func encodeJSON(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding %T: %w", v, err)
	}
	return out.Bytes(), nil
}

// Schema is the version of the records on a host's disk. It grows with every field that is added, also in a manifest:
// an older program then reports a record of a newer one, instead of a damaged one.
const Schema = 6

// Versions of records that older programs read: a host whose agent is of an older version is repaired by newer ones
// over SSH.
const (
	// withoutPolicies is the version of records of bundles without policies of Windows.
	withoutPolicies = 5
	// withoutKeys is that of records of bundles without authorized keys either.
	withoutKeys = 4
	// withoutName is that of records of bundles that name no Node either.
	withoutName = 3
)

// schemaOf returns the version of a record of these bundles.
func schemaOf(bundles ...BundleRecord) int {
	switch {
	case slices.ContainsFunc(bundles, hasPolicies):
		return Schema
	case slices.ContainsFunc(bundles, hasKeys):
		return withoutPolicies
	case slices.ContainsFunc(bundles, func(b BundleRecord) bool { return b.Manifest.NodeName() != "" }):
		return withoutKeys
	}
	return withoutName
}

func hasKeys(b BundleRecord) bool {
	return slices.ContainsFunc(b.Manifest.Layers, func(l bundle.Index) bool { return len(l.Layer.AuthorizedKeys) > 0 })
}

func hasPolicies(b BundleRecord) bool {
	return slices.ContainsFunc(b.Manifest.Layers, func(l bundle.Index) bool { return len(l.Layer.Policies) > 0 })
}

// sharedSchema is that of records which programs of several versions work with at the same time. It does not grow: an
// agent would refuse everything when a newer program has staged executables for it.
const sharedSchema = 3

// maxRecord bounds a ledger or journal, in bytes, and maxValues its values; that of a full node is under 1 MiB and
// has 10,000 values.
const (
	maxRecord = 64 << 20
	maxValues = 1_000_000
)

// ErrDamaged means that a record exists and cannot be read.
var ErrDamaged = errors.New("damaged")

// DecodeFile decodes a record. A record that does not exist leaves into as it is; one of a newer program is a
// *bundle.SchemaError.
func DecodeFile(ctx context.Context, host Files, path, what string, into any) error {
	data, err := ReadAll(ctx, host, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("reading %s: %w", what, err)
	}
	var newer *bundle.SchemaError
	if err := bundle.CheckSchema(data, what, Schema); errors.As(err, &newer) {
		return err
	}
	if err := bundle.CheckValues(data, what, maxValues); err != nil {
		return fmt.Errorf("reading %s: %w: %w", what, ErrDamaged, err)
	}
	// Strict, because a record of the same schema has only known fields: anything else is damage.
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("reading %s: %w: %w", what, ErrDamaged, err)
	}
	return nil
}

// ReadAll returns the contents of a small file. A file that does not exist is fs.ErrNotExist.
func ReadAll(ctx context.Context, host Files, path string) ([]byte, error) {
	f, err := host.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxRecord))
	return data, errors.Join(err, f.Close())
}

// ReplaceFile encodes a record and replaces its file.
func ReplaceFile(ctx context.Context, host Files, path string, record any) error {
	data, err := encodeJSON(record)
	if err != nil {
		return err
	}
	return host.Write(ctx, path, bundle.AccessAdmins, bytes.NewReader(data))
}

// Where records are in the StateFolder.
const (
	FileLedger  = plan.StateFolder + `\ledger.json`
	FileJournal = plan.StateFolder + `\journal.json`
	FileCache   = plan.StateFolder + `\cache.json`
	FileConfirm = plan.StateFolder + `\confirmed`
	FileStaged  = plan.StateFolder + `\staged.json`
	FileUndone  = plan.StateFolder + `\undone.json`
	// FileAccepted has the newest accepted state of the Node.
	FileAccepted = plan.StateFolder + `\accepted.json`
	// FileSigners is by which keys it was signed.
	FileSigners = plan.StateFolder + `\signers.json`
	// FileBoots is for which requests the host was booted.
	FileBoots = plan.StateFolder + `\boots.json`
	// FileRemoval is of which Node the removal of this host has begun, and FileRemovalAccess the kubeconfig with which it
	// reports.
	FileRemoval       = plan.StateFolder + `\removal.json`
	FileRemovalAccess = plan.StateFolder + `\removal-kubeconfig`
	// FileGuard is the program of bundle.GuardService.
	FileGuard   = plan.StateFolder + `\guard.exe`
	DirContents = plan.StateFolder + `\contents`
	DirPrevious = plan.StateFolder + `\previous`
)

// Reader reads the files of a host.
type Reader interface {
	Stat(ctx context.Context, paths []string) ([]plan.FileInfo, error)
	List(ctx context.Context, directory string) ([]plan.FileInfo, error)
	Open(ctx context.Context, path string) (io.ReadCloser, error)
}

// Files are the files of a host, as far as records need them.
type Files interface {
	Reader
	Write(ctx context.Context, path string, access bundle.Access, content io.Reader) error
	Link(ctx context.Context, path, second string) error
	Remove(ctx context.Context, path string) error
}
