package published

// WaitsForAdoption reports whether another operator has joined a node, by the Node's annotations: it has a version, and
// no bundle was ever published on it, or reported by its agent. What a node has of its own ledger shows in its report.
// One that is being adopted waits until its own node agent reports.
func WaitsForAdoption(annotations map[string]string) bool {
	r, err := DecodeReport(annotations[ReportAnnotation])
	return WaitsByReport(annotations, r, err)
}

// WaitsByReport is WaitsForAdoption for who has decoded the report already, or why it cannot be.
func WaitsByReport(annotations map[string]string, r Report, unreadable error) bool {
	switch {
	case annotations[VersionAnnotation] == "":
		return false
	case annotations[ReportAnnotation] == "":
		return annotations[DesiredAnnotation] == ""
	}
	return unreadable == nil && r.Adopting
}
