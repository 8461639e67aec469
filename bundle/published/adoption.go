package published

// WaitsForAdoption reports whether a node of the existing operator waits for adoption: its Node has a version annotation
// and neither a desired bundle nor a report. While it is being adopted (Report.Adopting) it still counts as waiting,
// until its own node agent reports.
func WaitsForAdoption(annotations map[string]string) bool {
	r, err := DecodeReport(annotations[ReportAnnotation])
	return WaitsByReport(annotations, r, err)
}

// WaitsByReport is WaitsForAdoption for callers that have decoded the report already; unreadable is the error of
// decoding it.
func WaitsByReport(annotations map[string]string, r Report, unreadable error) bool {
	switch {
	case annotations[VersionAnnotation] == "":
		return false
	case annotations[ReportAnnotation] == "":
		return annotations[DesiredAnnotation] == ""
	}
	return unreadable == nil && r.Adopting
}
