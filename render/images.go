package render

import (
	"fmt"

	"wmco/bundle"
	"wmco/render/mirrors"
	"wmco/render/reason"
)

// NodeImage is an image that every node needs, and where containerd looks for it.
type NodeImage struct {
	// Purpose is what the node needs it for.
	Purpose string `json:"purpose"`
	mirrors.Lookup
}

// NodeImages returns the images that every node needs before any workload of a user.
func (c Cluster) NodeImages() []NodeImage {
	hosts := mirrors.Build(c.Mirrors, c.Settings.Mirrors.options())
	return []NodeImage{{Purpose: "pause", Lookup: hosts.Lookup(c.Settings.PauseImage)}}
}

// checkNodeImages reports an image that every node needs if it cannot be pulled at all, or if the cluster has mirrors and
// none of them has the image.
func (c Cluster) checkNodeImages(hosts mirrors.Result) bundle.Findings {
	image := hosts.Lookup(c.Settings.PauseImage)
	f := bundle.Finding{Object: c.Origins[FromSettings], Field: "pauseImage"}
	switch {
	case len(image.Mirrors) == 0 && !image.Source:
		f.Severity, f.Reason = bundle.SeverityWarning, reason.NodeImageUnreachable
		f.Message = fmt.Sprintf("no pod can start: the pause image %s cannot be pulled from anywhere", image.Image)
		f.Fix = "allow or mirror its registry, or set pauseImage in " + SettingsConfigMap
	case len(image.Mirrors) == 0 && len(c.Mirrors.Sets) > 0:
		f.Severity, f.Reason = bundle.SeverityInfo, reason.NodeImageNotMirrored
		f.Message = fmt.Sprintf("no mirror has the pause image %s, which is pulled by %s: a disconnected node cannot start pods", image.Image, image.By)
		f.Fix = "mirror it with an ImageTagMirrorSet, or set pauseImage in " + SettingsConfigMap + " to a digest that an ImageDigestMirrorSet covers"
	default:
		return nil
	}
	return bundle.Findings{f}
}

// PausePlaces returns where containerd asks for the pause image, without which no pod starts.
func (c Cluster) PausePlaces() []mirrors.Place {
	return mirrors.Build(c.Mirrors, c.Settings.Mirrors.options()).Places(c.Settings.PauseImage)
}
