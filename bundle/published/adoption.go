package published

// WaitsForAdoption reports whether another operator has joined a node, by the Node's annotations: it has a version, and no bundle was ever
// published on it, or reported by its agent. What a node has of its own ledger shows in its report.
func WaitsForAdoption(annotations map[string]string) bool {
	return annotations[VersionAnnotation] != "" && annotations[DesiredAnnotation] == "" && annotations[ReportAnnotation] == ""
}
