package gateway

import (
	"encoding/json"

	"k8s.io/utils/lru"

	"wmco/gateway/places"
)

// maxLearned is more digests than the images of a node have: 500 images of 30 layers.
const maxLearned = 16 << 10

// learned remembers which places a digest may come from because a tag led to it. Mirrors for tags are not asked for other digests.
type learned struct{ list *lru.Cache }

func newLearned() *learned { return &learned{lru.New(maxLearned)} }

func (l *learned) findPlaces(i places.Image) []places.Place {
	v, ok := l.list.Get(i)
	if !ok {
		return nil
	}
	return v.([]places.Place)
}

// addDigest notes the places of a digest; the one that answered comes first.
func (l *learned) addDigest(of places.Image, digest string, answered places.Place, all []places.Place) {
	of.Reference = digest
	l.list.Add(of, mergePlaces([]places.Place{answered}, all))
}

// addChildren notes the same places for the digests in a manifest: the images of an index, the configuration and layers of an image
// (github.com/opencontainers/image-spec, manifest.md and image-index.md).
func (l *learned) addChildren(of places.Image, manifest []byte) {
	list := l.findPlaces(of)
	if len(list) == 0 {
		return
	}
	type descriptor struct {
		Digest string `json:"digest"`
	}
	var m struct {
		Manifests, Layers []descriptor
		Config            descriptor
	}
	if json.Unmarshal(manifest, &m) != nil {
		return
	}
	for _, d := range append(append(m.Manifests, m.Layers...), m.Config) {
		if d.Digest != "" {
			of.Reference = d.Digest
			l.list.Add(of, list)
		}
	}
}
