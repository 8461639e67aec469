package files

import (
	"testing"

	"wmco/applier/plan"
	"wmco/bundle"
)

func TestAccessOf(t *testing.T) {
	const file, folder = plan.FileRegular, plan.FileDirectory
	tests := map[string]struct {
		descriptor string
		kind       plan.FileKind
		want       bundle.Access
	}{
		"a file for administrators":                     {"O:BAD:P(A;;FA;;;SY)(A;;FA;;;BA)", file, bundle.AccessAdmins},
		"a file for users":                              {"O:BAD:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;BU)", file, bundle.AccessUsers},
		"a folder for administrators":                   {"O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)", folder, bundle.AccessAdmins},
		"a folder for users":                            {"O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)", folder, bundle.AccessUsers},
		"with a group and flags":                        {"O:SYG:SYD:PAI(A;;FA;;;SY)(A;;FA;;;BA)", file, bundle.AccessAdmins},
		"in another order":                              {"O:BAD:P(A;;FA;;;BA)(A;;FA;;;SY)", file, bundle.AccessAdmins},
		"with rights as numbers":                        {"O:BAD:P(A;;0x1f01ff;;;SY)(A;;FA;;;BA)(A;;FRFX;;;BU)", file, bundle.AccessUsers},
		"with inherited entries":                        {"O:BAD:AI(A;ID;FA;;;SY)(A;ID;FA;;;BA)(A;ID;0x1200a9;;;BU)", file, bundle.AccessUsers},
		"with an entry twice":                           {"O:BAD:P(A;;FA;;;SY)(A;;FA;;;BA)(A;ID;FA;;;BA)", file, bundle.AccessAdmins},
		"owned by a user":                               {"O:S-1-5-21-1-2-3-1001D:P(A;;FA;;;SY)(A;;FA;;;BA)", file, plan.AccessOther},
		"users may write":                               {"O:BAD:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1301bf;;;BU)", file, plan.AccessOther},
		"authenticated users may read":                  {"O:BAD:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;AU)", file, plan.AccessOther},
		"administrators have no entry":                  {"O:BAD:P(A;;FA;;;SY)", file, plan.AccessOther},
		"an entry that denies":                          {"O:BAD:P(D;;FA;;;BU)(A;;FA;;;SY)(A;;FA;;;BA)", file, plan.AccessOther},
		"an object entry":                               {"O:BAD:P(A;;FA;x;;SY)(A;;FA;;;BA)", file, plan.AccessOther},
		"a folder without inheritance":                  {"O:BAD:P(A;;FA;;;SY)(A;;FA;;;BA)", folder, plan.AccessOther},
		"a folder with an entry only for what is in it": {"O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICIIO;FA;;;CO)", folder, plan.AccessOther},
		"no DACL, which allows everyone":                {"O:BAD:NO_ACCESS_CONTROL", file, plan.AccessOther},
		"an empty DACL, which allows no one":            {"O:BAD:P", file, plan.AccessOther},
		"without an owner":                              {"D:P(A;;FA;;;SY)(A;;FA;;;BA)", file, plan.AccessOther},
		"an empty descriptor":                           {"", file, plan.AccessOther},
		"a truncated descriptor":                        {"O:BAD:P(A;;FA;;;SY)(A;;FA", file, plan.AccessOther},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := accessOf(tt.descriptor, tt.kind); got != tt.want {
				t.Errorf("%s is %q, want %q", tt.descriptor, got, tt.want)
			}
		})
	}
}

func TestOwnerOf(t *testing.T) {
	for descriptor, want := range map[string]plan.Owner{
		"O:BAD:P(A;;FA;;;SY)":                  plan.OwnerAdmins,
		"O:SYG:SYD:AI(A;ID;FA;;;BU)":           plan.OwnerAdmins,
		"O:LAG:DUD:AI(A;ID;FA;;;SY)":           plan.OwnerAdmins,
		"O:" + installer + "D:P(A;;FA;;;SY)":   plan.OwnerAdmins,
		"O:BUD:P(A;;FA;;;SY)(A;;FA;;;BA)":      plan.OwnerOther,
		"O:S-1-5-21-1-2-3-1001D:P(A;;FA;;;SY)": plan.OwnerOther,
		"D:P(A;;FA;;;SY)":                      plan.OwnerOther,
		"":                                     plan.OwnerOther,
	} {
		if got := ownerOf(descriptor); got != want {
			t.Errorf("%q is of %q, want %q", descriptor, got, want)
		}
	}
}

func TestAccessOfIsTheInverseOfDescriptor(t *testing.T) {
	for _, access := range []bundle.Access{bundle.AccessAdmins, bundle.AccessUsers} {
		for _, kind := range []plan.FileKind{plan.FileRegular, plan.FileDirectory} {
			text, err := accessDescriptor(access, kind)
			if err != nil {
				t.Fatal(err)
			}
			if got := accessOf(text, kind); got != access {
				t.Errorf("%s is %q, want %q", text, got, access)
			}
		}
	}
	if text, err := accessDescriptor("everybody", plan.FileRegular); err == nil {
		t.Errorf("an unknown access gives %s", text)
	}
}
