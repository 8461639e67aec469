package main

import (
	"cmp"
	"runtime/debug"
	"slices"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// gate is one feature gate at the release's own version. Needs are the gates that must be on where it is on.
type gate struct {
	Name            string
	Locked, Default bool
	Needs           []string
}

// gates returns every gate that the kubelet accepts in its configuration, sorted by name.
func gates() []gate {
	all := utilfeature.DefaultMutableFeatureGate.GetAll()
	needs := utilfeature.DefaultMutableFeatureGate.Dependencies()
	out := make([]gate, 0, len(all))
	for name, spec := range all {
		g := gate{Name: string(name), Locked: spec.LockToDefault, Default: spec.Default}
		for _, n := range needs[name] {
			g.Needs = append(g.Needs, string(n))
		}
		slices.Sort(g.Needs)
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b gate) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// kubernetesVersion is the version of the k8s.io/kubernetes module that this program was built with.
func kubernetesVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == "k8s.io/kubernetes" {
			return m.Version
		}
	}
	return ""
}
