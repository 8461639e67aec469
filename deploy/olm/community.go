package olm

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// What the community catalog has of the existing operator, and OKD shows
// (github.com/redhat-openshift-ecosystem/community-operators-prod,
// operators/community-windows-machine-config-operator). Its newest release there is for clusters 4.13.
const (
	communityPrefix  = "community-"
	communityPackage = communityPrefix + Package
	communityDisplay = "Community " + displayName
)

// Community returns the files of the pull request that adds a bundle to the community catalog: its folder, with the
// package, the channel and the display name that users of OKD know. What is installed is the same.
//
//	operators/community-windows-machine-config-operator/<version>/{manifests,metadata}, ci.yaml
func Community(b Files, r Release) (Files, error) {
	folder := "operators/" + communityPackage + "/"
	all := Files{}
	if err := all.add(folder+"ci.yaml", map[string]any{"updateGraph": "replaces-mode"}); err != nil {
		return nil, err
	}
	const own, notes = "manifests/" + Package + ".clusterserviceversion.yaml", "metadata/annotations.yaml"
	for name, content := range b {
		switch name {
		case own, notes: // below
		default:
			all[folder+r.Version+"/"+name] = content
		}
	}
	var csv map[string]any
	if err := yaml.Unmarshal(b[own], &csv); err != nil {
		return nil, fmt.Errorf("reading the ClusterServiceVersion of the bundle: %w", err)
	}
	if err := renameCommunity(csv, r); err != nil {
		return nil, err
	}
	if err := all.add(folder+r.Version+"/manifests/"+communityPackage+".clusterserviceversion.yaml", csv); err != nil {
		return nil, err
	}
	return all, all.add(folder+r.Version+"/"+notes, map[string]any{"annotations": communityLabels()})
}

// renameCommunity gives a ClusterServiceVersion the names of the community catalog. Earlier releases of this operator
// alone are updated: those of the existing one are for clusters that are too old.
func renameCommunity(csv map[string]any, r Release) error {
	metadata, _ := csv["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	spec, _ := csv["spec"].(map[string]any)
	if annotations == nil || spec == nil {
		return fmt.Errorf("reading the ClusterServiceVersion of the bundle: it has no annotations or no spec")
	}
	metadata["name"] = communityPrefix + r.Name()
	annotations["olm.skipRange"] = "<" + r.Version
	spec["displayName"] = communityDisplay
	return nil
}

// communityLabels are those of the bundle, for its package and its one channel.
func communityLabels() map[string]string {
	all := Labels()
	for key, value := range all {
		switch {
		case strings.HasSuffix(key, ".package.v1"):
			value = communityPackage
		case strings.HasSuffix(key, ".channels.v1"), strings.HasSuffix(key, ".channel.default.v1"):
			value = channelPreview
		}
		all[key] = value
	}
	return all
}
