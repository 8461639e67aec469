package payload

import (
	"slices"

	"wmco/bundle"
)

// Set is a payload that was built. The zero value is no payload: executables then have names but no digests.
type Set struct {
	// Source is the folder that it was read from, for findings.
	Source string
	Built  []Built
}

// Built is one executable of a set.
type Built struct {
	Name    string
	Version string
	// Digest and Size (in bytes) are those of the uncompressed executable, as it is on the node.
	Digest bundle.Digest
	Size   int64
	// Stored is its file in the image and in the folder, compressed; zero where it is not known.
	Stored Blob
}

// IsZero reports whether there is no payload.
func (s Set) IsZero() bool { return s.Source == "" && len(s.Built) == 0 }

// Find returns the executable of that name, and whether there is one.
func (s Set) Find(name string) (Built, bool) {
	for _, b := range s.Built {
		if b.Name == name {
			return b, true
		}
	}
	return Built{}, false
}

// For returns the executables that nodes with that minor version of Kubernetes get, on any platform.
func (s Set) For(minor string) Set {
	s.Built = slices.DeleteFunc(slices.Clone(s.Built), func(b Built) bool { return !Find(b.Name).ServesKubernetes(minor) })
	return s
}

// Missing returns the executables of the table that the set lacks: none of a set that is zero, which has no digests at
// all.
func (s Set) Missing() []Executable {
	if s.IsZero() {
		return nil
	}
	return slices.DeleteFunc(Table(), func(x Executable) bool { _, ok := s.Find(x.Name); return ok })
}
