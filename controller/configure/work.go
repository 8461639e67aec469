package configure

import (
	"context"

	"wmco/applier/remote"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/status"
)

// Work is a task of the operator over SSH on the host of a node.
type Work struct {
	State nodestate.State
	// Reason is for programs, text for people.
	Reason, text string
}

// The reasons of Work.
const (
	ReasonCopying   = "CopyingExecutables"
	ReasonRepairing = "RepairingAgent"
	ReasonCleaning  = "CleaningUp"
)

// CopyExecutables is to copy the executables of the newest bundle to a host.
func CopyExecutables() Work {
	return Work{nodestate.Updating, ReasonCopying, "copying the executables of the newest bundle to the host"}
}

// RepairAgent is to restart a node agent that does not report.
func RepairAgent() Work {
	return Work{nodestate.Updating, ReasonRepairing, "repairing the node agent"}
}

// CleanUpHost is to remove everything managed from a host.
func CleanUpHost() Work {
	return Work{nodestate.Removing, ReasonCleaning, "the host is cleaned up"}
}

// nodePrefix distinguishes the steps of nodes from those of hosts that join.
const nodePrefix = "node/"

// BeginWork returns a context that records its steps as those of the node, until end is called.
func (u *Unjoined) BeginWork(ctx context.Context, node string, w Work) (working context.Context, end func()) {
	u.changeSteps(func() bool {
		if u.works == nil {
			u.works = map[string]Work{}
		}
		u.works[node] = w
		return true
	})
	return remote.WithSteps(ctx, func(s remote.Step) { u.NoteStep(nodePrefix+node, s) }), func() { u.endWork(node) }
}

func (u *Unjoined) endWork(node string) {
	u.changeSteps(func() bool {
		delete(u.works, node)
		delete(u.steps, nodePrefix+node)
		return true
	})
}

// NodeWork returns the current work on the host of a node, with its step; false if there is none.
func (u *Unjoined) NodeWork(node string) (status.Host, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	w, ok := u.works[node]
	return status.Host{Name: node, Node: node, State: w.State, Reason: w.Reason, Message: u.workText(node)}, ok
}

// workText describes the current work on the host of a node; empty if there is none.
func (u *Unjoined) workText(node string) string {
	w, ok := u.works[node]
	if step := u.visibleStep(nodePrefix + node); ok && step != "" {
		return w.text + ": " + step
	}
	return w.text
}

// withWork adds the current work to a removal: it replaces the message if there is no problem, and otherwise follows it.
func (u *Unjoined) withWork(h status.Host) status.Host {
	text := u.workText(h.Node)
	switch {
	case text == "":
	case h.State == nodestate.Removing:
		h.Message = text
	default:
		h.Message = published.ShortenTo(h.Message, maxTried) + "; it is retried: " + text
	}
	return h
}
