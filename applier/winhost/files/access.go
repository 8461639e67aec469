package files

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wmco/applier/plan"
	"wmco/bundle"
)

// The parts of a security descriptor in its string format
// (learn.microsoft.com/windows/win32/secauthz/security-descriptor-string-format, .../ace-strings):
//
//	O:BA     owned by Administrators, so that a user who created the folder before cannot change its access
//	D:P      a protected DACL: it inherits nothing from the folder above
//	OICI     on folders: inherited by the files and folders that programs create in it
//	FA       full access         0x1200a9  read and run (FILE_GENERIC_READ | FILE_GENERIC_EXECUTE)
//	SY BA BU SYSTEM, Administrators, Users
const (
	inheritedByAll = "OICI"
	rightsAll      = "FA"
	rightsRead     = "0x1200a9"
)

// entry is an entry of a DACL that allows.
type entry struct{ flags, rights, trustee string }

// accessEntries returns the entries of an access.
func accessEntries(access bundle.Access, kind plan.FileKind) ([]entry, error) {
	flags := ""
	if kind == plan.FileDirectory {
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

// accessDescriptor returns the security descriptor, as a string, that gives a file or folder the access.
func accessDescriptor(access bundle.Access, kind plan.FileKind) (string, error) {
	all, err := accessEntries(access, kind)
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

// printedDescriptor matches a descriptor with an owner and a DACL as
// ConvertSecurityDescriptorToStringSecurityDescriptor prints it: the owner, an optional group, flags and entries.
var printedDescriptor = regexp.MustCompile(`^O:(.+?)(?:G:.+?)?D:([A-Z_]*)((?:\([^()]*\))*)$`)

// accessOf returns the access that a descriptor gives: one of the bundle's two, or AccessOther. An inherited entry
// counts as much as any other. The owner may always change the access, so it must be one of those who may write.
func accessOf(descriptor string, kind plan.FileKind) bundle.Access {
	parts := printedDescriptor.FindStringSubmatch(descriptor)
	if parts == nil || parts[1] != "BA" && parts[1] != "SY" || strings.Contains(parts[2], "NO_ACCESS_CONTROL") {
		return plan.AccessOther
	}
	have, ok := printedEntries(parts[3])
	if !ok {
		return plan.AccessOther
	}
	for _, access := range []bundle.Access{bundle.AccessAdmins, bundle.AccessUsers} {
		want, err := accessEntries(access, kind)
		if err == nil && sameEntries(have, want) {
			return access
		}
	}
	return plan.AccessOther
}

// installer is NT SERVICE\TrustedInstaller, which owns what Windows installs.
const installer = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"

// ownerOf returns the owner in a descriptor. LA is the built-in account of the administrator
// (learn.microsoft.com/windows/win32/secauthz/sid-strings).
func ownerOf(descriptor string) plan.Owner {
	parts := printedDescriptor.FindStringSubmatch(descriptor)
	if parts != nil && slices.Contains([]string{"BA", "SY", "LA", installer}, parts[1]) {
		return plan.OwnerAdmins
	}
	return plan.OwnerOther
}

// printedEntries reads the entries of a DACL. It returns false if one of them does anything but allow.
func printedEntries(text string) ([]entry, bool) {
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

// canonicalRights returns one name for rights that Windows prints in several ways.
func canonicalRights(rights string) string {
	switch strings.ToLower(rights) {
	case "0x1f01ff":
		return rightsAll
	case "0x1200a9", "frfx":
		return rightsRead
	}
	return rights
}

// sameEntries ignores the order, which has no meaning among entries that allow.
func sameEntries(a, b []entry) bool {
	order := func(x, y entry) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) }
	return slices.Equal(slices.Compact(slices.SortedFunc(slices.Values(a), order)), slices.SortedFunc(slices.Values(b), order))
}
