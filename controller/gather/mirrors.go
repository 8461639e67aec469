package gather

import (
	"encoding/json"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"

	"wmco/bundle"
	"wmco/render"
	"wmco/render/mirrors"
)

// readMirrors reads the mirror sets of all three kinds, the registry settings and the pull secret.
func (g *gatherer) readMirrors() {
	for _, o := range g.listObjects(groupConfig, string(mirrors.DigestSet)) {
		var set configv1.ImageDigestMirrorSet
		if !g.decodeObject(o, &set) {
			continue
		}
		for i, m := range set.Spec.ImageDigestMirrors {
			g.addMirrors(mirrors.Set{
				Kind: mirrors.DigestSet, Ref: o.Ref, Field: fmt.Sprintf("spec.imageDigestMirrors[%d]", i),
				Source: m.Source, Mirrors: mirrorNames(m.Mirrors), Policy: mirrors.Policy(m.MirrorSourcePolicy),
			})
		}
	}
	for _, o := range g.listObjects(groupConfig, string(mirrors.TagSet)) {
		var set configv1.ImageTagMirrorSet
		if !g.decodeObject(o, &set) {
			continue
		}
		for i, m := range set.Spec.ImageTagMirrors {
			g.addMirrors(mirrors.Set{
				Kind: mirrors.TagSet, Ref: o.Ref, Field: fmt.Sprintf("spec.imageTagMirrors[%d]", i),
				Source: m.Source, Mirrors: mirrorNames(m.Mirrors), Policy: mirrors.Policy(m.MirrorSourcePolicy),
			})
		}
	}
	for _, o := range g.listObjects(groupOperator, string(mirrors.ContentSourcePolicy)) {
		var policy operatorv1alpha1.ImageContentSourcePolicy
		if !g.decodeObject(o, &policy) {
			continue
		}
		for i, m := range policy.Spec.RepositoryDigestMirrors {
			g.addMirrors(mirrors.Set{
				Kind: mirrors.ContentSourcePolicy, Ref: o.Ref, Field: fmt.Sprintf("spec.repositoryDigestMirrors[%d]", i), Source: m.Source, Mirrors: m.Mirrors,
			})
		}
	}
	g.registrySources()
	g.readImagePolicies()
	g.pullSecret()
}

func (g *gatherer) addMirrors(set mirrors.Set) {
	g.cluster.Mirrors.Sets = append(g.cluster.Mirrors.Sets, set)
}

func mirrorNames(list []configv1.ImageMirror) []string {
	var names []string
	for _, m := range list {
		names = append(names, string(m))
	}
	return names
}

func (g *gatherer) registrySources() {
	o, ok := g.findObject(place{groupConfig, "Image", "", clusterName})
	if !ok {
		return
	}
	var image configv1.Image
	if !g.decodeObject(o, &image) {
		return
	}
	s := image.Spec.RegistrySources
	g.cluster.Mirrors.Scopes = mirrors.Scopes{
		Ref: o.Ref, Insecure: s.InsecureRegistries, Blocked: s.BlockedRegistries, Allowed: s.AllowedRegistries,
	}
}

// isObject reports whether a text is a JSON object. Any other text, null included, has lost its credentials on the way.
func isObject(text []byte) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(text, &object) == nil && object != nil
}

// pullSecret reads the pull secret. Every cluster has one, {} where it needs no credentials. Without its value, a
// stand-in keeps the bundle from being applied: nodes would lose the credentials of their mirrors.
func (g *gatherer) pullSecret() {
	data, ref := g.readSecret(render.FromPullSecret, render.PullSecretNamespace, render.PullSecretName)
	g.cluster.Mirrors.PullSecretRef = g.cluster.Origins[render.FromPullSecret]
	if value := data[keyPullSecret]; hasValue(value) && isObject(value) {
		g.cluster.Mirrors.PullSecret = bundle.NewSecret(string(value))
		return
	}
	g.cluster.Mirrors.PullSecret = g.secretPlaceholder(
		ref, keyPullSecret, "add the object as another --from; a cluster without credentials has {} there",
	)
}
