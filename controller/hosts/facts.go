package hosts

import (
	"context"

	"wmco/applier/remote"
	"wmco/bundle"
)

// askFacts asks a host, and notes the answer for LastFacts.
func (h *Hosts) askFacts(ctx context.Context, agent *remote.Agent) (bundle.Facts, error) {
	facts, err := agent.Facts(ctx)
	if err != nil {
		return bundle.Facts{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen[agent.Target().Host()] = onlyNames(facts)
	return facts, nil
}

// longestName is longer than any name of a host, in bytes.
const longestName = 1 << 10

// onlyNames returns the names in facts, which are kept of a host: its answer may be as large as an answer can be.
func onlyNames(f bundle.Facts) bundle.Facts {
	if len(f.HostName)+len(f.DNSSuffix)+len(f.MetadataName) > longestName {
		return bundle.Facts{Schema: f.Schema}
	}
	return bundle.Facts{Schema: f.Schema, HostName: f.HostName, DNSSuffix: f.DNSSuffix, MetadataName: f.MetadataName}
}

// askCheckedFacts asks a host for its facts, and refuses it if it is not the one that is meant.
func (h *Hosts) askCheckedFacts(ctx context.Context, agent *remote.Agent, check Check) (bundle.Facts, error) {
	facts, err := h.askFacts(ctx, agent)
	if err == nil {
		err = check(facts)
	}
	return facts, err
}

// LastFacts returns the names that a host reported when it was last reached by this process, zero if it was not. They
// only say whom to ask: a decision needs new ones.
func (h *Hosts) LastFacts(address string) bundle.Facts {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[address]
}
