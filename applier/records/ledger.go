package records

import (
	"slices"
	"time"

	"wmco/bundle"
)

// Ledger lists the managed entries of a host. It is written last, when a bundle is applied and confirmed.
type Ledger struct {
	Schema int `json:"schema"`
	// Program is the version of the program that wrote it.
	Program string       `json:"program"`
	Time    time.Time    `json:"time"`
	Bundle  BundleRecord `json:"bundle"`
	// Found are entries that were on the host before us. They are not managed: they stay when they are no longer
	// wanted.
	Found []bundle.EntryID `json:"found,omitempty"`
	// Folders are those that we made and that no bundle names: parents of others.
	Folders []string `json:"folders,omitempty"`
	// Shadows are variables of the host that we removed. The service control manager passes on the variables of its
	// boot until the next one, so services get these with an empty value until then
	// (learn.microsoft.com/windows/win32/procthread/environment-variables).
	Shadows []string `json:"shadows,omitempty"`
	// Fresh are variables of the host that were set since its boot: the service control manager does not have those.
	Fresh []string `json:"fresh,omitempty"`
	// Boot is the boot time of the host, for Shadows and Fresh.
	Boot string `json:"boot,omitempty"`
}

// AppliedDigest returns the digest of the bundle that was applied last, empty where there is none.
func (l Ledger) AppliedDigest() bundle.Digest { return l.Bundle.Manifest.Digest }

// HasEntry reports whether the bundle that was applied last has an entry.
func (l Ledger) HasEntry(id bundle.EntryID) bool {
	b := l.Bundle.ManifestBundle()
	return slices.ContainsFunc(b.Layers(), func(l bundle.Layer) bool { return slices.Contains(l.IDs(), id) })
}

// checkNames checks everything that a ledger names.
func (l Ledger) checkNames() error {
	if err := l.Bundle.checkRecord(); err != nil {
		return err
	}
	for _, name := range append(slices.Clone(l.Shadows), l.Fresh...) {
		if err := checkSetting(bundle.KindVariable, name); err != nil {
			return err
		}
	}
	return checkFolders(l.Folders)
}
