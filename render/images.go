package render

import (
	"fmt"
	"slices"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/render/mirrors"
)

// NodeImage is an image that every node needs, and where containerd looks for it.
type NodeImage struct {
	// Purpose is what the node needs it for.
	Purpose string `json:"purpose"`
	mirrors.Lookup
}

// hostsFiles returns the mirrors of the cluster as containerd has them.
func (c Cluster) hostsFiles() mirrors.Result {
	return mirrors.Build(c.Mirrors, mirrors.Options{
		Mode: c.Settings.Mirrors.Mode, Gateway: c.Settings.Mirrors.gatewayAddress(),
		PartialNever: c.Settings.Mirrors.PartialNever, PauseImage: c.Settings.PauseImage,
		PullSecretOnNodes: c.Settings.PullSecret == PullSecretNode,
	})
}

// NodeImages returns the images that every node needs before any workload of a user.
func (c Cluster) NodeImages() []NodeImage {
	if CheckImage(c.Settings.PauseImage) != nil {
		return []NodeImage{} // the settings are refused
	}
	return []NodeImage{{Purpose: "pause", Lookup: c.hostsFiles().Lookup(c.Settings.PauseImage)}}
}

// checkNodeImages reports an image that every node needs if it cannot be pulled at all, or if the cluster has mirrors
// and none of them has the image.
func (c Cluster) checkNodeImages(hosts mirrors.Result) bundle.Findings {
	if CheckImage(c.Settings.PauseImage) != nil {
		return nil // the settings are refused
	}
	image := hosts.Lookup(c.Settings.PauseImage)
	f := bundle.Finding{Object: c.Origins[FromSettings], Field: "pauseImage"}
	switch {
	case len(image.Mirrors) == 0 && !image.Source:
		f.Severity, f.Reason = bundle.SeverityWarning, reason.NodeImageUnreachable
		f.Message = fmt.Sprintf("no pod can start without the pause image %s, which cannot be pulled from anywhere", image.Image)
		f.Fix = "allow or mirror its registry, or set pauseImage in " + SettingsConfigMap
	case len(image.Mirrors) == 0 && len(c.Mirrors.Sets) > 0:
		f.Severity, f.Reason = bundle.SeverityInfo, reason.NodeImageNotMirrored
		f.Message = fmt.Sprintf(
			"no mirror has the pause image %s, which is pulled by %s: a disconnected node cannot start pods",
			image.Image, image.By,
		)
		f.Fix = "mirror it with an ImageTagMirrorSet, or set pauseImage in " + SettingsConfigMap + " to a digest that an ImageDigestMirrorSet covers"
	default:
		return nil
	}
	return bundle.Findings{f}
}

// StopsAsErrors returns the findings with those as errors with which no pod could start. The operator alone has them as
// warnings: it holds the change until a person has confirmed it.
func StopsAsErrors(findings bundle.Findings) bundle.Findings {
	out := append(bundle.Findings{}, findings...)
	for i, f := range out {
		if f.Reason == reason.NodeImageUnreachable {
			out[i].Severity = bundle.SeverityError
		}
	}
	return out
}

// PausePlaces returns where containerd asks for the pause image, without which no pod starts.
func (c Cluster) PausePlaces() []mirrors.Place {
	return c.hostsFiles().Places(c.Settings.PauseImage)
}

// checkPinnedImages reports images that are not pulled to Windows nodes. Whether there is an image for Windows, only the
// registry knows: the node reports it.
func (c Cluster) checkPinnedImages() bundle.Findings {
	var findings bundle.Findings
	kept, _ := c.pinnedImages()
	for _, p := range c.PinnedImages {
		f := bundle.Finding{Severity: bundle.SeverityWarning, Reason: reason.PinnedImageLeftOut, Object: p.Ref, Field: p.Field}
		switch err := bundle.CheckImageByDigest(p.Name); {
		case err != nil:
			f.Message, f.Fix = "is not pulled to Windows nodes: "+err.Error(), "name the image with its registry and its digest"
		case !slices.Contains(kept, p.Name):
			f.Message, f.Fix = fmt.Sprintf(
				"is not pulled to Windows nodes: a node pins at most %d images", bundle.MaxPinnedImages,
			), "remove images that no Pod of Windows nodes needs"
		default:
			continue
		}
		findings = append(findings, f)
	}
	return findings
}
