package render

import "wmco/bundle"

// policyEntries has Windows not boot by itself where the operator sees to its boots. With other settings the node agent
// puts back what was there before.
func (e *emitter) policyEntries() {
	r, ok := e.wantedRow(rowPolicyUpdates)
	if !ok || e.cluster.Settings.WindowsReboots != WindowsRebootsCoordinate || e.node.OlderAgent || e.node.NoPolicies {
		return
	}
	e.layer.Policies = append(e.layer.Policies, bundle.Policy{Name: r.Name, Value: bundle.UpdatesNotInstalled, Impact: r.Impact})
}
