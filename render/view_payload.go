package render

import (
	"fmt"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/payload"
	"wmco/render/mirrors"
)

// addExecutable adds the executable of a row and reports whether there is one. The agent has no entry without a
// payload, because its path contains its digest.
func (e *emitter) addExecutable(r Row) bool {
	x := payload.For(strings.TrimPrefix(string(r.ID), string(executableRow(""))), e.cluster.Kubernetes())
	built, known := e.options.Payload.Find(x.Name)
	if x.Name == payload.Agent && !known {
		return false
	}
	p := bundle.Payload{Path: x.Path, Component: x.Program, Version: x.Version, Impact: r.Impact}
	if known {
		p.Version, p.Digest, p.Size = built.Version, built.Digest, built.Size
	}
	if x.Name == payload.Agent {
		p.Path = payload.AgentPath(built.Digest)
	}
	e.layer.Payload = append(e.layer.Payload, p)
	return true
}

// agentPath returns the path of the agent's executable, and reports whether its content is known.
func (e *emitter) agentPath() (path string, known bool) {
	if built, ok := e.options.Payload.Find(payload.Agent); ok {
		return payload.AgentPath(built.Digest), true
	}
	return payload.Find(payload.Agent).Path, false
}

// verifiesSignatures reports whether nodes verify signatures of images.
func (c Cluster) verifiesSignatures() bool {
	return c.Settings.Mirrors.Mode == mirrors.Exact && len(c.Mirrors.Policies) > 0
}

// checkPayload reports the executables that nodes of the platform need and that the payload lacks.
func (c Cluster) checkPayload(set payload.Set) bundle.Findings {
	if set.IsZero() {
		return nil
	}
	r := report{ref: bundle.Ref{Source: set.Source}}
	for _, x := range payload.Table() {
		if _, ok := set.Find(x.Name); !ok && c.needsExecutable(x) {
			r.addFinding(
				bundle.SeverityError, reason.PayloadIncomplete, x.Name,
				fmt.Sprintf("the payload lacks an executable that nodes on %s with Kubernetes %s need", c.Platform, c.Kubernetes()),
				"build it: make payload PAYLOAD="+x.Name,
			)
		}
	}
	return r.findings
}
