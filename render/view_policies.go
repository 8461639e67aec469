package render

import "wmco/bundle"

// policyEntries keeps Windows from booting where the operator controls its boots. With other settings the node agent
// restores the earlier value.
func (e *emitter) policyEntries() {
	r, ok := e.wantedRow(rowPolicyUpdates)
	if !ok || e.cluster.Settings.WindowsReboots != WindowsRebootsCoordinate || e.node.OlderAgent || e.node.NoPolicies {
		return
	}
	e.layer.Policies = append(e.layer.Policies, bundle.Policy{Name: r.Name, Value: bundle.UpdatesNotInstalled, Impact: r.Impact})
}
