package applier

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// Observe compares the host with a manifest. Contents are those of it that the sender has. It writes nothing but the
// cache.
func (e *Engine) Observe(ctx context.Context, m bundle.Manifest, contents []archive.Content, full bool) (protocol.Observation, error) {
	return e.compareManifest(ctx, m, contents, Options{Full: full})
}

// ObserveChanges is Observe without drift: it compares what the bundle that was applied last does not have.
func (e *Engine) ObserveChanges(ctx context.Context, m bundle.Manifest, contents []archive.Content) (protocol.Observation, error) {
	return e.compareManifest(ctx, m, contents, Options{OnlyChanges: true})
}

func (e *Engine) compareManifest(ctx context.Context, m bundle.Manifest, contents []archive.Content,
	o Options) (protocol.Observation, error) {
	record, err := e.admitBundle(m, contents)
	if err != nil {
		return protocol.Observation{}, err
	}
	s, err := e.loadSituation(ctx)
	if err != nil {
		return protocol.Observation{}, wrapAsFault(err)
	}
	if err := e.checkNodeName(ctx, s, m); err != nil {
		return protocol.Observation{}, wrapAsFault(err)
	}
	if o.OnlyChanges {
		s.limitToChanges(record)
	}
	answer, err := e.compareHost(ctx, s, record, o.Full)
	return answer, wrapAsFault(err)
}

// compareHost compares the host with a bundle, and saves the cache without the entries that were wrong.
func (e *Engine) compareHost(ctx context.Context, s *situation, record records.BundleRecord, full bool) (protocol.Observation, error) {
	_, p, err := s.observeAndPlan(ctx, s.targetOf(record), record, full)
	if err == nil {
		err = addCorrupt(ctx, s.records.Store, &p)
	}
	if err != nil {
		return protocol.Observation{}, err
	}
	if s.records.Ledger.AppliedDigest() != "" {
		s.records.SaveCache(ctx)
	}
	return e.observationOf(ctx, s, record, p)
}

func (e *Engine) observationOf(ctx context.Context, s *situation, record records.BundleRecord,
	p plan.Plan) (protocol.Observation, error) {
	refusals, err := e.refusalNotes(ctx, record, p)
	o := protocol.Observation{
		Schema: protocol.Schema, Program: e.Program, Bundle: record.Manifest.Digest, Applied: s.records.Ledger.AppliedDigest(),
		InSync: len(p.Steps)+len(p.Unknown) == 0 && !s.records.Interrupted,
		Impact: p.HighestImpact(), Actions: p.ShownActions(), Restarts: p.RestartedServices(),
		Missing: p.Missing, Foreign: p.Foreign, Adopt: p.Adopt, RebootPending: p.Pending, Waiting: p.Waiting,
		Notes: append(slices.Clone(s.records.Notes), refusals...), Facts: s.facts,
	}
	if s.records.Interrupted {
		o.Interrupted = s.records.Journal.Bundle.Manifest.Digest
	}
	return o, err
}

// Verify is Observe with every file read and every service probed. It writes nothing but the cache.
func (e *Engine) Verify(ctx context.Context, m bundle.Manifest, contents []archive.Content) (protocol.Observation, error) {
	record, err := e.admitBundle(m, contents)
	if err != nil {
		return protocol.Observation{}, err
	}
	s, err := e.loadSituation(ctx)
	if err != nil {
		return protocol.Observation{}, wrapAsFault(err)
	}
	o, err := e.compareHost(ctx, s, record, true)
	if err == nil {
		o.Unhealthy, err = e.unhealthyServices(ctx, s.targetOf(record))
	}
	return o, wrapAsFault(err)
}

// unhealthyServices probes each service that should run, once. One that has to run for a while only has to run.
func (e *Engine) unhealthyServices(ctx context.Context, t *plan.Target) ([]protocol.Unhealthy, error) {
	names := t.ServiceNames()
	states, err := e.Host.Services(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("observing services: %w", err)
	}
	var list []protocol.Unhealthy
	for _, s := range t.Services {
		if !s.Run {
			continue
		}
		i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, s.Config.Name) })
		if reason := unhealthyReason(ctx, e.Host, s, states[i]); reason != "" {
			list = append(list, protocol.Unhealthy{Service: s.Config.Name, Reason: reason})
		}
	}
	return list, nil
}
