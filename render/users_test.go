package render

import (
	"slices"
	"strings"
	"testing"

	"wmco/bundle"
)

// TestProgramsReadNothingThatUsersMayMake: kubelets run programs in the folder of volume plugins, and hybrid-overlay-node those that a kubeconfig in
// its configuration names. The defaults of both are below folders that every user may make in C:\.
func TestProgramsReadNothingThatUsersMayMake(t *testing.T) {
	fleet, findings, err := NewFleet(testCluster(bundle.PlatformNone), Options{})
	if err != nil || fleet == nil {
		t.Fatalf("%v %+v", err, findings)
	}
	joining := testNode()
	joining.Name = ""
	for stage, n := range map[bundle.Stage]Node{bundle.StageJoin: joining, bundle.StageJoined: testNode()} {
		b, _, err := fleet.Node(n)
		if err != nil {
			t.Fatal(err)
		}
		config := slices.IndexFunc(b.Cluster.Files, func(f bundle.File) bool { return f.Path == fileKubeletConf })
		if text := string(b.Cluster.Files[config].Content.Data); !strings.Contains(text, "\nvolumePluginDir: "+dirVolumes+"\n") {
			t.Errorf("%s: the kubelet has its own folder of volume plugins:\n%s", stage, text)
		}
		if !slices.Contains(b.Cluster.Directories, bundle.Directory{Path: dirVolumes, Access: bundle.AccessAdmins}) {
			t.Errorf("%s: %s is not for administrators alone", stage, dirVolumes)
		}
		overlay := slices.IndexFunc(b.Node.Services, func(s bundle.Service) bool { return s.Name == svcHybridOverlay })
		if (overlay >= 0) != (stage == bundle.StageJoined) {
			t.Errorf("%s: services %+v", stage, b.Node.Services)
		}
		if overlay >= 0 && !slices.Contains(b.Node.Services[overlay].Argv, "--config-file=NUL") {
			t.Errorf("%s: hybrid-overlay-node reads its own file: %q", stage, b.Node.Services[overlay].Argv)
		}
	}
}
