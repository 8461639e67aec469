package rollout

import "wmco/bundle"

// waitsForRoom reports whether the agent begins what is published when the disk of its host has room. That is no failure of the bundle, and the
// node is no canary that others wait for if there is another one.
func (m *member) waitsForRoom() bool { return m.answered && m.Report.WaitsForRoom() }

// awaitRoom keeps no place for a node whose disk is full: its permission to restart services ends. When there is room, its agent asks for it
// again.
func (p *planner) awaitRoom(m *member) {
	if m.Permitted != bundle.ImpactRestart {
		p.wait(m, ReasonRoom, m.Report.Message)
		return
	}
	s := m.State
	s.Turn.Permitted = p.now
	p.step(m, Step{Action: ActionPermit, Bundle: m.Published, Permit: bundle.ImpactNone, State: s, Why: "the disk of its host is full: its place is given back"})
}
