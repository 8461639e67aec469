package hosts

import (
	"context"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle"
)

// CheckHost asks a host for its facts, and refuses it as Wish.Check does. It changes nothing there. The connection is
// not kept: a key that is expected now is not expected later (Login.ExpectKey).
func (h *Hosts) CheckHost(ctx context.Context, w Wish) error {
	release, err := h.lockHost(w.Target.Host())
	if err != nil {
		return err
	}
	defer release()
	_, err = h.askCheckedFacts(ctx, h.confirms.AgentFor(w.Target), w.Check)
	return err
}

// Comparison is how a host compares with its bundle.
type Comparison struct {
	// Bundle is what the host should be, Seen what differs there.
	Bundle bundle.Digest
	Seen   protocol.Observation
	// LacksPayload is true while the host lacks executables of the bundle.
	LacksPayload bool
	// Facts are those of the host in the form of a report.
	Facts bundle.Facts
}

// CompareHost asks a host for its facts, renders its bundle, and asks what differs. It changes nothing there.
func (h *Hosts) CompareHost(ctx context.Context, w Wish) (Comparison, error) {
	release, err := h.lockHost(w.Target.Host())
	if err != nil {
		return Comparison{}, err
	}
	defer release()
	agent := h.client.AgentFor(w.Target)
	facts, err := h.askCheckedFacts(ctx, agent, w.Check)
	if err != nil {
		return Comparison{}, err
	}
	if err := remote.TakePlace(ctx); err != nil {
		return Comparison{}, err
	}
	request, err := h.renderRequest(w, facts)
	if err != nil {
		return Comparison{}, err
	}
	endpoints := map[string]bool{}
	for _, l := range request.Manifest.Layers {
		for _, e := range l.Layer.Endpoints {
			endpoints[e.Name] = true
		}
	}
	seen, err := agent.Observe(ctx, request)
	lacks, executables := false, request.Manifest.PayloadDigests()
	for _, m := range seen.Missing {
		lacks = lacks || executables[m.Digest]
	}
	return Comparison{request.Manifest.Digest, seen, lacks, facts.InReportForm(endpoints)}, err
}
