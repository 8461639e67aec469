package objects

import (
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"wmco/bundle"
)

// converted are the objects of the last reading, as they were converted.
type converted struct {
	mu   sync.Mutex
	last map[version]parsed
	now  map[version]parsed
}

// version is one version of an object, for one kind of want.
type version struct {
	apiVersion, kind string
	uid              types.UID
	resourceVersion  string
}

// beginReading begins a reading. The function that it returns ends it: what the reading did not need is forgotten.
func (c *converted) beginReading() func() {
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	c.now = make(map[version]parsed, len(c.last))
	return func() {
		c.last, c.now = c.now, nil
		c.mu.Unlock()
	}
}

// fromCluster converts an object of the client, unless this version of it is known.
func (c *converted) fromCluster(u unstructured.Unstructured, w Want) (parsed, *flaw) {
	if c == nil || u.GetUID() == "" || u.GetResourceVersion() == "" {
		return fromCluster(u, w)
	}
	key := version{apiVersion(w.Group, w.Version), w.Kind, u.GetUID(), u.GetResourceVersion()}
	p, ok := c.last[key]
	if !ok {
		var bad *flaw
		if p, bad = fromCluster(u, w); bad != nil {
			return p, bad
		}
		p.Content = p.ContentDigest()
	}
	c.now[key] = p
	return p, nil
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
