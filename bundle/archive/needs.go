package archive

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"wmco/bundle"
)

// ErrMasked means that the digest of a secret is masked: the bundle is a preview and cannot be applied.
var ErrMasked = errors.New("the digest of a secret is masked, as in a preview")

// Needs returns the digest of every content that the manifest names, each once, sorted: files, executables whose digest
// is known, trusted CAs, secret variables. The masked digests of a preview name no content.
func Needs(m bundle.Manifest) []bundle.Digest {
	return slices.Sorted(maps.Keys(sizesByDigest(m)))
}

// sizesByDigest returns the size of every content that the manifest names, 0 where the manifest does not have it.
func sizesByDigest(m bundle.Manifest) map[bundle.Digest]int64 {
	all := map[bundle.Digest]int64{}
	for _, index := range m.Layers {
		for _, n := range namedIn(index.Layer) {
			if n.digest != bundle.Masked {
				all[n.digest] = max(all[n.digest], n.size)
			}
		}
	}
	return all
}

// named is a content as an entry names it.
type named struct {
	entry  bundle.EntryID
	digest bundle.Digest
	size   int64
	// content is that of the entry in the layer; nil for an executable, whose content is in a payload.
	content *bundle.Content
}

func namedIn(l bundle.Layer) []named {
	var all []named
	for i := range l.Files {
		f := &l.Files[i]
		all = append(all, named{bundle.KindFile.ID(f.Path), f.Digest, f.Size, &f.Content})
	}
	for _, p := range l.Payload {
		if p.Digest != "" {
			all = append(all, named{entry: bundle.KindPayload.ID(p.Path), digest: p.Digest, size: p.Size})
		}
	}
	for i := range l.TrustedCAs {
		c := &l.TrustedCAs[i]
		all = append(all, named{entry: bundle.KindTrustedCA.ID(string(c.Digest)), digest: c.Digest, content: &c.Content})
	}
	for i := range l.Variables {
		v := &l.Variables[i]
		all = append(all, secretContent(bundle.KindVariable.ID(v.Name), v)...)
	}
	for _, e := range l.Environments {
		for i := range e.Variables {
			v := &e.Variables[i]
			all = append(all, secretContent(bundle.KindEnvironment.ID(e.Name+"/"+v.Name), v)...)
		}
	}
	return all
}

// secretContent returns the content of a secret variable. The value of a public one is in the manifest itself.
func secretContent(entry bundle.EntryID, v *bundle.Variable) []named {
	if !v.Secret() {
		return nil
	}
	return []named{{entry: entry, digest: v.Digest, content: &v.Content}}
}

func compareDigests(a, b bundle.Digest) int { return strings.Compare(string(a), string(b)) }
