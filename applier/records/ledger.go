package records

import (
	"time"

	"wmco/bundle"
)

// Ledger is what we own on a host. It is written last, when a bundle is applied and confirmed.
type Ledger struct {
	Schema int `json:"schema"`
	// Program is the version of the one that wrote it.
	Program string    `json:"program"`
	Time    time.Time `json:"time"`
	Bundle  Bundle    `json:"bundle"`
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

func (l Ledger) Applied() bundle.Digest { return l.Bundle.Manifest.Digest }

// decodeLedger checks what a ledger says of bundles, so that nothing that it names is used unchecked.
func (l Ledger) check() error { return l.Bundle.check() }
