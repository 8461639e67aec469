package winhost

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wmco/applier"
	"wmco/bundle"
)

// What each access is, in the language of security descriptors
// (learn.microsoft.com/windows/win32/secauthz/security-descriptor-string-format, .../ace-strings):
//
//	O:BA     owned by Administrators, so that no user who made the folder before us can change its access
//	D:P      a DACL that takes nothing over from the folder above
//	OICI     on folders: for the files and folders that programs make in it
//	FA       everything          0x1200a9  read and run (FILE_GENERIC_READ | FILE_GENERIC_EXECUTE)
//	SY BA BU SYSTEM, Administrators, Users
const (
	inheritedByAll = "OICI"
	rightsAll      = "FA"
	rightsRead     = "0x1200a9"
)

// entry is one entry of a DACL that allows.
type entry struct{ flags, rights, trustee string }

// entries are those of an access.
func entries(access bundle.Access, kind applier.FileKind) ([]entry, error) {
	flags := ""
	if kind == applier.FileDirectory {
		flags = inheritedByAll
	}
	all := []entry{{flags, rightsAll, "SY"}, {flags, rightsAll, "BA"}}
	switch access {
	case bundle.AccessAdmins:
		return all, nil
	case bundle.AccessUsers:
		return append(all, entry{flags, rightsRead, "BU"}), nil
	}
	return nil, fmt.Errorf("unknown access %q", access)
}

// descriptor is the security descriptor, as text, that gives a file or folder the access.
func descriptor(access bundle.Access, kind applier.FileKind) (string, error) {
	all, err := entries(access, kind)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString("O:BAD:P")
	for _, e := range all {
		fmt.Fprintf(&text, "(A;%s;%s;;;%s)", e.flags, e.rights, e.trustee)
	}
	return text.String(), nil
}

// shownDescriptor is a descriptor with an owner and a DACL as ConvertSecurityDescriptorToStringSecurityDescriptor writes
// it: the owner, perhaps a group, flags and entries.
var shownDescriptor = regexp.MustCompile(`^O:(.+?)(?:G:.+?)?D:([A-Z_]*)((?:\([^()]*\))*)$`)

// accessOf tells which of the bundle's two accesses a descriptor gives, AccessOther when it is neither. Entries that were
// inherited count like own ones: what counts is who may do what. The owner may always change the access, so it has to be
// one of those who may write.
func accessOf(descriptor string, kind applier.FileKind) bundle.Access {
	parts := shownDescriptor.FindStringSubmatch(descriptor)
	if parts == nil || parts[1] != "BA" && parts[1] != "SY" || strings.Contains(parts[2], "NO_ACCESS_CONTROL") {
		return applier.AccessOther
	}
	have, ok := shownEntries(parts[3])
	if !ok {
		return applier.AccessOther
	}
	for _, access := range []bundle.Access{bundle.AccessAdmins, bundle.AccessUsers} {
		want, err := entries(access, kind)
		if err == nil && sameEntries(have, want) {
			return access
		}
	}
	return applier.AccessOther
}

// shownEntries reads the entries of a DACL; false when one of them does not plainly allow.
func shownEntries(text string) ([]entry, bool) {
	var all []entry
	for ace := range strings.SplitSeq(strings.Trim(text, "()"), ")(") {
		fields := strings.Split(ace, ";")
		if len(fields) != 6 || fields[0] != "A" || fields[3]+fields[4] != "" {
			return nil, false
		}
		all = append(all, entry{strings.ReplaceAll(fields[1], "ID", ""), canonicalRights(fields[2]), fields[5]})
	}
	return all, true
}

// canonicalRights gives one name to rights that Windows writes in two ways.
func canonicalRights(rights string) string {
	switch strings.ToLower(rights) {
	case "0x1f01ff":
		return rightsAll
	case "0x1200a9", "frfx":
		return rightsRead
	}
	return rights
}

// sameEntries compares without regard to the order, which means nothing among entries that allow.
func sameEntries(a, b []entry) bool {
	order := func(x, y entry) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) }
	return slices.Equal(slices.Compact(slices.SortedFunc(slices.Values(a), order)), slices.SortedFunc(slices.Values(b), order))
}
