package render

import (
	"slices"
	"testing"

	"wmco/bundle"
)

// TestTheKeysOfTheOperatorAreAFileOfTheBundle: in both stages, so that a host has them from its join on, and in no preview.
func TestTheKeysOfTheOperatorAreAFileOfTheBundle(t *testing.T) {
	const keys = "-----BEGIN PUBLIC KEY-----\n"
	for _, stage := range []bundle.Stage{bundle.StageJoin, bundle.StageJoined} {
		for _, given := range []string{"", keys} {
			fleet, findings, err := NewFleet(testCluster(bundle.PlatformNone), Options{SigningKeys: []byte(given)})
			if err != nil || fleet == nil {
				t.Fatalf("%v %+v", err, findings)
			}
			files := fleet.shared[stage].layer.Files
			i := slices.IndexFunc(files, func(f bundle.File) bool { return f.Path == bundle.SigningKeysFile })
			switch {
			case given == "" && i >= 0:
				t.Errorf("%s: a preview has the file %+v", stage, files[i])
			case given != "" && (i < 0 || string(files[i].Content.Data) != keys || files[i].Access != bundle.AccessAdmins || files[i].Secret):
				t.Errorf("%s: %d, %+v", stage, i, files)
			}
		}
	}
}
