package selftest

import (
	"testing"

	"wmco/applier/plan"
	"wmco/bundle"
)

// TestAFolderOfAnotherUserIsNotRunFrom: whoever made the folder in which the self-test runs programs as SYSTEM may change them.
func TestAFolderOfAnotherUserIsNotRunFrom(t *testing.T) {
	for name, tt := range map[string]struct {
		info  plan.FileInfo
		wrong bool
	}{
		"nothing":                  {plan.FileInfo{}, false},
		"its own":                  {plan.FileInfo{Kind: plan.FileDirectory, Owner: plan.OwnerAdmins, Access: bundle.AccessUsers}, false},
		"its own, under Wine":      {plan.FileInfo{Kind: plan.FileDirectory}, false},
		"of a user":                {plan.FileInfo{Kind: plan.FileDirectory, Owner: plan.OwnerOther, Access: plan.AccessOther}, true},
		"in which users add files": {plan.FileInfo{Kind: plan.FileDirectory, Owner: plan.OwnerAdmins, Access: plan.AccessOther}, true},
		"a link":                   {plan.FileInfo{Kind: plan.FileOther}, true},
		"a file":                   {plan.FileInfo{Kind: plan.FileRegular, Owner: plan.OwnerAdmins, Access: bundle.AccessUsers}, true},
	} {
		tt.info.Path = Root
		if err := CheckRoot(tt.info); (err != nil) != tt.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
}
