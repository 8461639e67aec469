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
	list := e.executables
	if !ok || len(list.Places) == 0 {
		return
	}
	content, err := encodedContent(list, list.Masked())
	if err != nil {
		e.errs = append(e.errs, err)
		return
	}
	e.addContent(r, r.Name, content)
	e.addCauses(r, r.Name)
}

// ExecutableSources are the executables of the cluster's nodes, and where they are fetched from. It has no places where
// that is not known, or must not be asked.
func (f *Fleet) ExecutableSources() sources.List { return f.executables }

// executableSources makes the list. The findings are about an image with the executables that no node may pull.
func (c Cluster) executableSources(o Options) (sources.List, bundle.Findings) {
	image := parseImageByDigest(cmp.Or(c.Settings.Executables.Image, o.Image))
	l := sources.List{Payload: o.Payload.For(c.Kubernetes()).Digest(), Image: image}
	if c.Settings.Executables.From == ExecutablesFromSSH || image == (places.Image{}) || l.Payload == "" {
		return l, nil
	}
	l.Rate, _ = c.Settings.Rollout.fetchBytes() // the settings are refused
	for _, b := range o.Payload.For(c.Kubernetes()).Built {
		if !c.needsExecutable(payload.Find(b.Name)) {
			continue
		}
		if b.Stored == (payload.Blob{}) {
			return l, nil // of a preview
		}
		l.Executables = append(l.Executables, sources.Executable{Name: b.Name, Raw: payload.Blob{Digest: b.Digest, Size: b.Size}, Stored: b.Stored})
	}
	slices.SortFunc(l.Executables, func(a, b sources.Executable) int { return strings.Compare(a.Name, b.Name) })
	decision := c.Mirrors.GatewayTable().Decide(image)
	if l.Places = decision.Places; len(l.Places) == 0 {
		return l, bundle.Findings{{
			Severity: bundle.SeverityWarning, Reason: reason.ExecutablesNotPullable, Object: c.Origins[FromSettings], Field: "executables",
			Message: fmt.Sprintf("nodes cannot fetch executables: no place may be asked for %s: %s", image, decision.Skipped[0].Why),
			Fix:     "allow or mirror the operator's image, or set executables.from: SSH in " + SettingsConfigMap,
		}}
	}
	for i, p := range l.Places {
		if p.Source && c.Settings.PullSecret == PullSecretNode {
			l.Places[i].Auth = mirrors.CredentialsFor(c.Mirrors.PullSecret, image.Name())
		}
		l.Places[i].Source = false
	}
	return l, nil
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
