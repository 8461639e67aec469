package objects

import (
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"wmco/bundle"
)

// knownDigests are the digests of the objects of the last reading. The objects themselves are not kept: with a thousand
// nodes they take 40 MiB.
type knownDigests struct {
	mu        sync.Mutex
	last, now map[version]bundle.Digest
}

// version is one version of an object.
type version struct {
	apiVersion, kind string
	uid              types.UID
	resourceVersion  string
}

// beginReading begins a reading. The function that it returns ends it: what the reading did not need is forgotten.
func (c *knownDigests) beginReading() func() {
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	c.now = make(map[version]bundle.Digest, len(c.last))
	return func() {
		c.last, c.now = c.now, nil
		c.mu.Unlock()
	}
}

// digestOf returns the digest of an object of the client, which is made once for each version of it; empty where that
// is not known.
func (c *knownDigests) digestOf(u unstructured.Unstructured, p parsed) bundle.Digest {
	if c == nil || u.GetUID() == "" || u.GetResourceVersion() == "" {
		return ""
	}
	key := version{apiVersion(p.Group, p.Version), p.Kind, u.GetUID(), u.GetResourceVersion()}
	d, ok := c.last[key]
	if !ok {
		d = p.ContentDigest()
	}
	c.now[key] = d
	return d
}

// ContentDigest returns the digest of the object without the metadata that the API server maintains.
func (o Object) ContentDigest() bundle.Digest {
	if o.Content != "" {
		return o.Content
	}
	return contentDigest(o.JSON)
}

func contentDigest(data []byte) bundle.Digest {
	var object map[string]any
	if json.Unmarshal(data, &object) != nil {
		return bundle.Of(data)
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		for _, name := range []string{"resourceVersion", "generation", "uid", "creationTimestamp", "managedFields"} {
			delete(metadata, name)
		}
	}
	canonical, err := json.Marshal(object)
	if err != nil {
		return bundle.Of(data)
	}
	return bundle.Of(canonical)
}
