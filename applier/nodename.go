package applier

import (
	"context"
	"fmt"
	"slices"

	"wmco/applier/records"
	"wmco/bundle"
)

// checkNodeName refuses a bundle for another Node than the one that this host is, and one with which a host joins where
// this host is a node already, as a *RefusedError.
func (e *Engine) checkNodeName(ctx context.Context, s *situation, m bundle.Manifest) error {
	have, from, err := e.nodeNameOfHost(ctx, s)
	if err != nil {
		return err
	}
	name := m.NodeName()
	if name != "" && have != "" && have != name && !e.ChangeNode {
		return &RefusedError{Why: fmt.Sprintf("the bundle is for node %s, and this host is node %s by %s (fix: apply the bundle of node %s; if the host is to become node %s, apply with --change-node)", name, have, from, have, name)}
	}
	if !m.HasStage(bundle.StageJoin) || s.resumesManifest(m) || !s.isComplete(have) || e.mayResetNode(have) {
		return nil
	}
	return &RefusedError{Why: refuseRejoin(have, from)}
}

// nodeNameOfHost returns the name of the Node that this host is, empty where that is not known, and its source: the
// bundles that the host has had and, where these name none, the client certificate of the kubelet.
func (e *Engine) nodeNameOfHost(ctx context.Context, s *situation) (name, from string, err error) {
	if name := s.records.Ledger.Bundle.Manifest.NodeName(); name != "" {
		return name, "the bundle that was applied last", nil
	}
	if name := s.records.Journal.Bundle.Manifest.NodeName(); name != "" {
		return name, "the bundle of an interrupted run", nil
	}
	if e.NodeName != nil {
		name, err = e.NodeName(ctx)
	}
	return name, "the client certificate of its kubelet", err
}

// isComplete reports whether the host may have the bundle of a node: a record has it, or one that would have it cannot
// be used and the kubelet is that of a node.
func (s *situation) isComplete(node string) bool {
	complete := func(r records.BundleRecord) bool { return r.Manifest.HasStage(bundle.StageJoined) }
	if slices.ContainsFunc(append([]records.BundleRecord{s.records.Ledger.Bundle, s.records.Journal.Bundle}, s.records.Journal.Earlier...), complete) {
		return true
	}
	return node != "" && (s.records.Damaged || len(s.records.Untrusted) > 0)
}

// resumesManifest reports whether a run was interrupted that applies the manifest: it was accepted then.
func (s *situation) resumesManifest(m bundle.Manifest) bool {
	return s.records.Interrupted && s.records.Journal.Bundle.Manifest.Digest == m.Digest
}

// mayResetNode reports whether the node that this host is may be removed from it. A node whose name is not known may.
func (e *Engine) mayResetNode(node string) bool {
	return e.Reset != "" && (node == "" || node == e.Reset)
}

// refuseRejoin returns why the bundle with which a host joins is not applied to a node, and what to do.
func refuseRejoin(node, from string) string {
	what, name := "is a node by the records of the applier", "NAME"
	if node != "" {
		what, name = fmt.Sprintf("is node %s by %s", node, from), node
	}
	return fmt.Sprintf("the bundle is one to join a cluster with, and this host %s: it would stop what runs there (fix: if the node exists, apply its own bundle, with --node %s; if it does not exist any more, apply with --reset %s)", what, name, name)
}
