package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/gateway/places"
	"wmco/payload"
	"wmco/payload/sources"
	"wmco/render/mirrors"
)

// executableListEntries adds the list of executables with their places. Older node agents ignore it.
func (e *emitter) executableListEntries() {
	r, ok := e.wantedRow(rowExecutables)
	list := e.cluster.ExecutableSources(e.options)
	if !ok || len(list.Places) == 0 {
		return
	}
	data, err := list.Encode()
	if err != nil {
		e.errs = append(e.errs, err)
		return
	}
	preview, err := list.Masked().Encode()
	if err != nil {
		e.errs = append(e.errs, err)
		return
	}
	e.addContent(r, r.Name, maybeSecret(data, preview))
	e.addCauses(r, r.Name)
}

// ExecutableSources are the executables of the cluster's nodes, and where they are fetched from. It has no places where
// that is not known, or must not be asked.
func (c Cluster) ExecutableSources(o Options) sources.List {
	image := parseImageByDigest(cmp.Or(c.Settings.Executables.Image, o.Image))
	l := sources.List{Payload: o.Payload.For(c.Kubernetes()).Digest(), Image: image}
	if c.Settings.Executables.From == ExecutablesFromSSH || image == (places.Image{}) || l.Payload == "" {
		return l
	}
	l.Rate, _ = c.Settings.Rollout.fetchBytes() // the settings are refused
	for _, b := range o.Payload.For(c.Kubernetes()).Built {
		if !c.needsExecutable(payload.Find(b.Name)) {
			continue
		}
		if b.Stored == (payload.Blob{}) {
			return l // of a preview
		}
		l.Executables = append(l.Executables, sources.Executable{Name: b.Name, Raw: payload.Blob{Digest: b.Digest, Size: b.Size}, Stored: b.Stored})
	}
	slices.SortFunc(l.Executables, func(a, b sources.Executable) int { return strings.Compare(a.Name, b.Name) })
	l.Places = c.Mirrors.GatewayTable().Decide(image).Places
	for i, p := range l.Places {
		if p.Source {
			l.Places[i].Auth, l.Places[i].Source = mirrors.CredentialsFor(c.Mirrors.PullSecret, image.Name()), false
		}
	}
	return l
}

// checkExecutableSources reports an image with the executables that no node may pull.
func (c Cluster) checkExecutableSources(o Options) bundle.Findings {
	l := c.ExecutableSources(o)
	if len(l.Executables) == 0 || len(l.Places) > 0 {
		return nil
	}
	skipped := c.Mirrors.GatewayTable().Decide(l.Image).Skipped
	f := bundle.Finding{
		Severity: bundle.SeverityWarning, Reason: reason.ExecutablesNotPullable, Object: c.Origins[FromSettings], Field: "executables",
		Message: fmt.Sprintf("nodes cannot fetch executables: no place may be asked for %s: %s", l.Image, skipped[0].Why),
		Fix:     "allow or mirror the operator's image, or set executables.from: SSH in " + SettingsConfigMap,
	}
	return bundle.Findings{f}
}

// needsExecutable reports whether nodes of the cluster need an executable of its minor version.
func (c Cluster) needsExecutable(x payload.Executable) bool {
	return x.Serves(c.Platform) && x.ServesKubernetes(c.Kubernetes()) && (x.Name != payload.Verifier || c.verifiesSignatures())
}

// parseImageByDigest returns the image of a name by digest, zero for anything else, such as the image of a container
// that was loaded into the node without a registry.
func parseImageByDigest(name string) places.Image {
	if bundle.CheckImageByDigest(name) != nil {
		return places.Image{}
	}
	name, digest, _ := strings.Cut(name, "@")
	registry, repository, _ := strings.Cut(name, "/")
	return places.Image{Registry: strings.ToLower(registry), Repository: repository, Reference: digest}
}
