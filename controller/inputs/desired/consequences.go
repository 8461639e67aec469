package desired

import (
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// withoutConsequences drops that an object is missing from the inputs where one that cannot be read may be it: that one
// is an error already.
func withoutConsequences(findings bundle.Findings) bundle.Findings {
	var unread []bundle.Ref
	for _, f := range findings {
		if isUnreadObject(f) {
			unread = append(unread, f.Object)
		}
	}
	return slices.DeleteFunc(findings, func(f bundle.Finding) bool {
		isMissing := f.Reason == reason.InputMissing || f.Reason == reason.SecretStandIn ||
			f.Reason == reason.ClusterVersionUnknown
		return isMissing && slices.ContainsFunc(unread, func(r bundle.Ref) bool { return mayBeObject(r, f.Object) })
	})
}

// isUnreadObject reports whether the finding is about an object or a file that could not be read.
func isUnreadObject(f bundle.Finding) bool {
	if f.Severity != bundle.SeverityError {
		return false
	}
	switch f.Reason {
	case reason.ObjectMalformed, reason.ObjectTooLarge, reason.ListTooDeep, reason.UnknownVersion, reason.Forbidden,
		reason.InputUnreadable, reason.InputTooLarge, reason.InputNotManifest:
		return true
	}
	return false
}

// mayBeObject reports whether what could not be read may be the object, as far as its kind and name are known.
func mayBeObject(unread, object bundle.Ref) bool {
	if unread.Kind == "" || strings.HasSuffix(unread.Kind, "List") {
		return true
	}
	return unread.Kind == object.Kind && (unread.Name == "" || unread.Name == object.Name) &&
		(unread.Namespace == "" || unread.Namespace == object.Namespace)
}
