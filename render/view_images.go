package render

import (
	"slices"

	"wmco/bundle"
)

// PinnedImage is an image that nodes pull before Pods need it, and keep.
type PinnedImage struct {
	// Name is what the object asks for.
	Name string
	// Ref is the PinnedImageSet, Field the path of the name in it.
	Ref   bundle.Ref
	Field string
}

// pinnedImages returns the images by name, each once, without those that reportPinnedImages omits.
func (c Cluster) pinnedImages() (images []string, causes []bundle.Ref) {
	for _, p := range c.PinnedImages {
		if bundle.CheckImageByDigest(p.Name) != nil || !slices.Contains(images, p.Name) && len(images) == bundle.MaxPinnedImages {
			continue
		}
		images = append(images, p.Name)
		if !slices.Contains(causes, p.Ref) {
			causes = append(causes, p.Ref)
		}
		slices.Sort(images)
		images = slices.Compact(images)
	}
	return images, causes
}

// pinnedImageEntries adds the list of images. The node agent has containerd pull and pin them, and reports how far it
// is; an older one ignores the list.
func (e *emitter) pinnedImageEntries() {
	r, ok := e.wantedRow(rowPinnedImages)
	images, causes := e.cluster.pinnedImages()
	if !ok || len(images) == 0 {
		return
	}
	data, err := bundle.EncodePinnedImages(images)
	if err != nil {
		e.errs = append(e.errs, err)
		return
	}
	e.addContent(r, r.Name, bundle.Content{Data: data})
	e.causedBy(r, r.Name, causes)
	if err := e.pinnedCredentials(images, causes); err != nil {
		e.errs = append(e.errs, err)
	}
}

// pinnedCredentials adds the credentials for the registries of the images. Older agents ignore the file.
func (e *emitter) pinnedCredentials(images []string, causes []bundle.Ref) error {
	r, _ := e.wantedRow(rowPinnedCredentials)
	list := e.hosts.SourceCredentials(e.cluster.Mirrors, images)
	if len(list) == 0 {
		return nil
	}
	data, err := bundle.EncodePinnedCredentials(list)
	if err != nil {
		return err
	}
	for i := range list {
		list[i].Auth = list[i].Auth.Masked()
	}
	preview, err := bundle.EncodePinnedCredentials(list)
	if err != nil {
		return err
	}
	e.addContent(r, r.Name, maybeSecret(data, preview))
	e.causedBy(r, r.Name, append(slices.Clone(causes), e.cluster.Mirrors.PullSecretRef))
	return nil
}
