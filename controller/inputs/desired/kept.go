package desired

import (
	"slices"

	"wmco/bundle"
	"wmco/payload/sources"
)

// KeepExecutables returns a bundle as it is for a host that has another one. The list by which the host fetches
// executables stays as it is there, if the bundle has none: only the operator knows its own image. Where the bundle was
// rendered without a payload, the executables and the command of the node agent, whose path has the digest of its
// executable, stay too.
func KeepExecutables(want, has bundle.Bundle) bundle.Bundle {
	isList := func(f bundle.File) bool { return f.Path == sources.File }
	i := slices.IndexFunc(has.Cluster.Files, isList)
	if i >= 0 && want.Cluster.Stage == has.Cluster.Stage && !slices.ContainsFunc(want.Cluster.Files, isList) {
		want.Cluster.Files = append(slices.Clone(want.Cluster.Files), has.Cluster.Files[i])
		want.Cluster.Normalize()
	}
	if slices.ContainsFunc(want.Payload(), func(p bundle.Payload) bool { return p.Digest != "" }) {
		return want
	}
	want.Cluster.Payload = has.Cluster.Payload
	want.Cluster.Services = withAgentCommand(want.Cluster.Services, has.Cluster.Services)
	return want
}

// KeepingExecutables is KeepExecutables for what was rendered.
func (r Rendered) KeepingExecutables(has bundle.Bundle) (Rendered, error) {
	var err error
	r.Bundle.Bundle = KeepExecutables(r.Bundle.Bundle, has)
	if r.Bundle.ClusterDigest, err = r.Bundle.Cluster.Digest(); err != nil {
		return r, err
	}
	r.Bundle.Digest, err = bundle.DigestLayers(r.Bundle.ClusterDigest, r.Bundle.NodeDigest)
	return r, err
}

// withAgentCommand returns services in which the command of the node agent is that of others.
func withAgentCommand(list, others []bundle.Service) []bundle.Service {
	is := func(s bundle.Service) bool { return s.Name == bundle.AgentService }
	i, k := slices.IndexFunc(list, is), slices.IndexFunc(others, is)
	if i < 0 || k < 0 {
		return list
	}
	list = slices.Clone(list)
	list[i].Argv, list[i].Reads = others[k].Argv, others[k].Reads
	return list
}
