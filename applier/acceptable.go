package applier

import (
	"slices"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// admitBundle returns a bundle as it is recorded, or why no host can have it: a *RefusedError for what it asks for, and
// the errors of bundle.DecodeManifest and archive.NewChecker for malformed input.
func (e *Engine) admitBundle(m bundle.Manifest, contents []archive.Content) (records.BundleRecord, error) {
	if err := m.CheckEncoded(); err != nil {
		return records.BundleRecord{}, err
	}
	if err := e.checkAcceptable(m); err != nil {
		return records.BundleRecord{}, err
	}
	if _, err := archive.NewChecker(m, contents); err != nil {
		return records.BundleRecord{}, err
	}
	return records.BundleRecord{Manifest: m, Contents: contents}, nil
}

// checkAcceptable returns why no host can have a manifest, as a *RefusedError.
func (e *Engine) checkAcceptable(m bundle.Manifest) error {
	if isMasked(m) {
		return &RefusedError{Why: "the manifest is a preview: its secrets are masked"}
	}
	b := records.BundleRecord{Manifest: m}.ManifestBundle()
	if err := plan.CheckRoots(b); err != nil {
		return &RefusedError{Why: err.Error()}
	}
	return e.checkPermitted(b)
}

// checkPermitted returns why the program installs no such bundle, as a *RefusedError.
func (e *Engine) checkPermitted(b bundle.Bundle) error {
	if e.Permits == nil {
		return &RefusedError{Why: "this program has no table of what a bundle may name"}
	}
	if err := e.Permits(b); err != nil {
		return &RefusedError{Why: err.Error(), Foreign: true}
	}
	return nil
}

// isMasked reports whether a manifest is that of a preview.
func isMasked(m bundle.Manifest) bool {
	isMasked := func(v bundle.Variable) bool { return v.Digest == bundle.Masked }
	for _, l := range m.Layers {
		files := slices.ContainsFunc(l.Layer.Files, func(f bundle.File) bool { return f.Digest == bundle.Masked })
		services := slices.ContainsFunc(l.Layer.Environments, func(e bundle.Environment) bool { return slices.ContainsFunc(e.Variables, isMasked) })
		if files || services || slices.ContainsFunc(l.Layer.Variables, isMasked) {
			return true
		}
	}
	return false
}

// permittedRecord returns why this program does not repair or end what another one recorded. A rollback restores what
// what was there before, whatever it was; another bundle, or a cleanup, removes the recorded entries.
func (r *run) permittedRecord() error {
	switch {
	case !r.records.Interrupted:
		return r.engine.checkPermitted(r.records.Ledger.Bundle.ManifestBundle())
	case r.records.Journal.Phase == records.PhaseRollback:
		return nil
	}
	return r.engine.checkPermitted(r.records.Journal.Bundle.ManifestBundle())
}
