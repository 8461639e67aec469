package render

import (
	"slices"
	"testing"

	"wmco/bundle"
	"wmco/payload"
)

func TestExecutablesAreForExistingPlatforms(t *testing.T) {
	for _, e := range payload.Table() {
		for _, p := range e.Platforms {
			if !slices.Contains(bundle.Platforms(), p) {
				t.Errorf("%s is for %q, which is not a platform", e.Name, p)
			}
		}
	}
	// The entries that run an executable are for the same platforms as the executable.
	for _, r := range Catalog() {
		for _, p := range bundle.Platforms() {
			_, provider := cloudProvider(p)
			for name, row := range map[string]RowID{payload.CloudManager: rowCloudManager, provider: rowCredentialProvider} {
				if r.ID == row && (name != "" && payload.Find(name).Serves(p)) != r.appliesTo(p, bundle.StageJoined) {
					t.Errorf("%s and %s differ on %s", name, row, p)
				}
			}
		}
	}
}

// builtSet returns a payload with everything that nodes of a platform need, without the named executables.
func builtSet(p bundle.Platform, without ...string) payload.Set {
	set := payload.Set{Source: "payload"}
	for _, e := range payload.Table() {
		if e.Serves(p) && !slices.Contains(without, e.Program) {
			set.Built = append(set.Built, payload.Built{Name: e.Name, Version: "v1.2.3", Digest: bundle.Of([]byte(e.Program)), Size: int64(len(e.Program))})
		}
	}
	return set
}

func TestAPayloadMustHaveEverythingOfThePlatform(t *testing.T) {
	for _, p := range bundle.Platforms() {
		fleet, findings, err := NewFleet(testCluster(p), Options{Payload: builtSet(p)})
		if err != nil || fleet == nil {
			t.Fatalf("%s: %v %+v", p, err, findings)
		}
		for _, x := range fleet.shared[bundle.StageJoined].layer.Payload {
			if x.Digest != bundle.Of([]byte(x.Component)) || x.Size != int64(len(x.Component)) || x.Version != "v1.2.3" {
				t.Errorf("%s: %+v", p, x)
			}
		}
	}
	fleet, findings, err := NewFleet(testCluster(bundle.PlatformAWS), Options{Payload: builtSet(bundle.PlatformAWS, payload.Kubelet, payload.ECRProvider)})
	if err != nil || fleet != nil {
		t.Fatalf("%v, %v", fleet, err)
	}
	var got []string
	for _, f := range findings {
		if f.Reason == "PayloadIncomplete" && f.Severity == bundle.SeverityError {
			got = append(got, f.Field)
		}
	}
	if !slices.Equal(got, []string{payload.ECRProvider, payload.Find(payload.Kubelet).Name}) {
		t.Errorf("%+v", findings)
	}
}
