package configure

import (
	"fmt"
	"slices"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// imagesWithin is for how long a new node is kept cordoned until its pinned images are there.
const imagesWithin = 45 * time.Minute

// awaitsImages reports whether a new node stays cordoned because its host still pulls the images of its bundle, for at
// most imagesWithin. It is false for a node that the operator did not cordon, which may have pods, and for an agent that
// pulls no images.
func (h Host) awaitsImages(node windowsnode.Node, b bundle.Bundle) bool {
	list := imageList(b)
	images := node.Report.Images
	isMissing := images.List != list || images.CountMissing() > 0 && !images.Settled
	if list == "" || !isMissing || node.Annotations[JoiningAnnotation] == "" || !node.Report.Has(published.FeaturePinnedImages) {
		h.pulling.ForgetHost(node.Name)
		return false
	}
	return h.pulling.SeenFor(node.Name, string(node.UID), h.Elapsed()) < imagesWithin
}

// imageList returns the digest of the list of pinned images, empty if the bundle has none.
func imageList(b bundle.Bundle) bundle.Digest {
	i := slices.IndexFunc(b.Cluster.Files, func(f bundle.File) bool { return f.Path == bundle.PinnedImagesFile })
	if i < 0 {
		return ""
	}
	return b.Cluster.Files[i].Digest
}

// pullingImages is the progress of a node that waits for its images.
func pullingImages(node windowsnode.Node) Progress {
	text := "the node stays cordoned until its pinned images are pulled: " + describeImages(node.Report.Images)
	return Progress{State: StateJoining, Reason: ReasonCompleting, Message: text, Node: node.Name, Again: AgainSoon}
}

func describeImages(p published.ImageProgress) string {
	if p.Wanted == 0 {
		return "the node agent has not started"
	}
	text := fmt.Sprintf("%d of %d", p.Present, p.Wanted)
	if p.Message != "" {
		text += "; " + p.Message
	}
	return text
}

// describeJoined reports that the node has joined, and which images it lacks.
func describeJoined(node windowsnode.Node) string {
	text := "node " + node.Name + " has joined"
	if images := node.Report.Images; images.CountMissing() > 0 {
		text += fmt.Sprintf(", without %d of %s", images.CountMissing(), bundle.Count(images.Wanted, "pinned image"))
	}
	return text
}
