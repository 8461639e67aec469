package bundle

import (
	"cmp"
	"slices"
)

// FactPart names facts that come from one part of Windows, and may be unknown together. The kinds of settings are parts
// too.
type FactPart string

const (
	// PartNetworks are Networks and Endpoints, of the Host Networking Service.
	PartNetworks FactPart = "networks"
	// PartFeatures are Features, of DISM.
	PartFeatures FactPart = "features"
	// PartPendingBoots are PendingBoots, of the registry.
	PartPendingBoots FactPart = "pendingBoots"
	// PartDefender is DefenderRunning, of the service control manager.
	PartDefender FactPart = "defender"
)

// UnknownFact is a part of a host that Windows did not tell. That is another thing than a host that has none of it.
type UnknownFact struct {
	Part FactPart `json:"part"`
	// Error is why, the same for as long as the reason is.
	Error string `json:"error"`
}

// IsUnknown reports whether a part is not known.
func (f Facts) IsUnknown(part FactPart) bool {
	return slices.ContainsFunc(f.Unknown, func(u UnknownFact) bool { return u.Part == part })
}

// ErrorOf returns why a part is not known, empty if it is.
func (f Facts) ErrorOf(part FactPart) string {
	for _, u := range f.Unknown {
		if u.Part == part {
			return u.Error
		}
	}
	return ""
}

// KeepKnown returns the facts with what was known before of each part that is unknown now. They still say that it is.
func (f Facts) KeepKnown(before Facts) Facts {
	if f.IsUnknown(PartNetworks) {
		f.Networks, f.Endpoints = before.Networks, before.Endpoints
	}
	if f.IsUnknown(PartFeatures) {
		f.Features = before.Features
	}
	if f.IsUnknown(PartPendingBoots) {
		f.PendingBoots = before.PendingBoots
	}
	if f.IsUnknown(PartDefender) {
		f.DefenderRunning = before.DefenderRunning
	}
	return f
}

// AddUnknown adds parts, each once, sorted.
func (f Facts) AddUnknown(more ...UnknownFact) Facts {
	all := slices.Concat(f.Unknown, more)
	slices.SortStableFunc(all, func(a, b UnknownFact) int { return cmp.Compare(a.Part, b.Part) })
	f.Unknown = slices.CompactFunc(all, func(a, b UnknownFact) bool { return a.Part == b.Part })
	return f
}
