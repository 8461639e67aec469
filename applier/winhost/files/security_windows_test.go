package files

import (
	"testing"

	"golang.org/x/sys/windows"

	"wmco/applier/plan"
	"wmco/bundle"
)

// TestSecurityDescriptors checks that Windows reads the descriptors, and prints them so that they are read as the same access.
func TestSecurityDescriptors(t *testing.T) {
	for _, access := range []bundle.Access{bundle.AccessAdmins, bundle.AccessUsers} {
		for _, kind := range []plan.FileKind{plan.FileRegular, plan.FileDirectory} {
			sd, err := securityDescriptor(access, kind)
			if err != nil {
				t.Fatal(err)
			}
			control, _, err := sd.Control()
			if err != nil || control&windows.SE_DACL_PROTECTED == 0 {
				t.Errorf("%s %s inherits: control %x, %v", access, kind, control, err)
			}
			if got := accessOf(sd.String(), kind); got != access {
				t.Errorf("%s %s: Windows prints %s, which is read as %q", access, kind, sd, got)
			}
		}
	}
}
