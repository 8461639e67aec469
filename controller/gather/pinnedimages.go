package gather

import (
	"fmt"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"wmco/controller/gather/ignored"
	"wmco/render"
)

// readPinnedImages reads the PinnedImageSets for Windows nodes. The others, which those who only look read too, are for
// Linux nodes.
func (g *gatherer) readPinnedImages() {
	for _, o := range g.listObjects(groupMachineConfig, kindPinnedImageSet) {
		var set mcfgv1.PinnedImageSet
		if u, ok := asUnstructured(o); ok && u.GetLabels()[ignored.LabelPinnedFor] != ignored.PinnedForWindows ||
			!g.decodeObject(o, &set) {
			continue
		}
		for i, image := range set.Spec.PinnedImages {
			g.cluster.PinnedImages = append(g.cluster.PinnedImages, render.PinnedImage{
				Name: string(image.Name), Ref: o.Ref, Field: fmt.Sprintf("spec.pinnedImages[%d].name", i),
			})
		}
	}
}
