package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// PinnedImagesFile is where a host keeps the list of images that the node agent has containerd pull and pin. There is
// none where no images are asked for.
const PinnedImagesFile = `C:\k\pinned-images.json`

// MaxPinnedImages is how many images a node pins, as many as one PinnedImageSet may have (github.com/openshift/api,
// machineconfiguration/v1).
const MaxPinnedImages = 500

// PinnedImages is the content of PinnedImagesFile.
type PinnedImages struct {
	Schema int `json:"schema"`
	// Images are host[:port][/path]/name@sha256:<digest>, sorted, each once.
	Images []string `json:"images"`
}

// pinnedImagesSchema is the newest schema of the file.
const pinnedImagesSchema = 1

// maxImageName is the length of the longest name of an image in bytes, that of the API (ImageDigestFormat).
const maxImageName = 447

// imageByDigest is host[:port][/path]/name@sha256:<digest>. A first part without a dot or a port, which is no host, is
// refused: containerd would ask docker.io for it.
var imageByDigest = regexp.MustCompile(`^(?:localhost|[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)+|[a-zA-Z0-9-]+:[0-9]+|[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)+:[0-9]+)(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)+@sha256:[a-f0-9]{64}$`)

// CheckImageByDigest returns an error unless the text names an image with its registry and its digest.
func CheckImageByDigest(image string) error {
	if len(image) > maxImageName || !imageByDigest.MatchString(image) {
		return errors.New("it is not HOST[:PORT]/NAME@sha256:DIGEST")
	}
	return nil
}

// EncodePinnedImages returns the content of the file. The images are those that the list has in its order.
func EncodePinnedImages(images []string) ([]byte, error) {
	text, err := json.MarshalIndent(PinnedImages{Schema: pinnedImagesSchema, Images: images}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding pinned images: %w", err)
	}
	return append(text, '\n'), nil
}

// DecodePinnedImages reads what EncodePinnedImages wrote; a newer schema is a *SchemaError.
func DecodePinnedImages(data []byte) ([]string, error) {
	const what = "pinned images"
	if len(data) > MaxPinnedImages*(maxImageName+16)+1<<10 {
		return nil, fmt.Errorf("%w: %s", ErrTooLarge, what)
	}
	if err := CheckSchema(data, what, pinnedImagesSchema); err != nil {
		return nil, err
	}
	var list PinnedImages
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf("reading %s: %w", what, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading %s: something follows the value", what)
	}
	if len(list.Images) > MaxPinnedImages {
		return nil, fmt.Errorf("%w: %s has %d, at most %d are allowed", ErrTooLarge, what, len(list.Images), MaxPinnedImages)
	}
	for i, image := range list.Images {
		if err := CheckImageByDigest(image); err != nil {
			return nil, fmt.Errorf("reading %s: images[%d]: %w", what, i, err)
		}
	}
	return list.Images, nil
}
