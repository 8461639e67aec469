package render

import (
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/gateway/places"
	"wmco/payload"
)

// gatewayEntries adds the gateway of the node where a registry goes through it. containerd does not depend on it: registries with a hosts file of their
// own are pulled from without it. A kubelet repeats pulls that fail before it has started.
func (e *emitter) gatewayEntries() {
	table := e.hosts.Table
	if len(table.Routed) == 0 {
		return
	}
	for _, id := range []RowID{rowGatewayFolder, rowGatewayLogs} {
		if r, ok := e.wantedRow(id); ok {
			e.layer.Directories = append(e.layer.Directories, bundle.Directory{Path: r.Name, Access: r.Access})
			e.addCauses(r, r.Name)
		}
	}
	for _, id := range []RowID{rowGatewayState, rowGatewayCounts} {
		if r, ok := e.wantedRow(id); ok {
			e.layer.State = append(e.layer.State, e.ownedState(r))
			e.addCauses(r, r.Name)
		}
	}
	if r, ok := e.wantedRow(rowPlaces); ok {
		content, err := placesContent(table)
		if err != nil {
			e.errs = append(e.errs, err)
			return
		}
		e.addContent(r, r.Name, content)
		e.addCauses(r, r.Name)
		e.causedBy(r, r.Name, e.routedCauses())
	}
	if r, ok := e.wantedRow(executableRow(payload.Verifier)); ok && len(table.Policies) > 0 && e.addExecutable(r) {
		e.addCauses(r, r.Name)
		var refs []bundle.Ref
		for _, p := range e.cluster.Mirrors.Policies {
			refs = append(refs, p.Ref)
		}
		e.causedBy(r, r.Name, refs)
	}
	exe, known := e.agentPath()
	var reads []string
	if known {
		reads = []string{exe}
	}
	log := dirGatewayLogs + `\` + svcGateway + ".log"
	address := e.cluster.Settings.Mirrors.gatewayAddress()
	e.addService(rowGateway, bundle.Service{
		Argv:     append([]string{exe, "registry"}, flagList(map[string]string{"listen": address, "log-file": log, "service": "true"})...),
		Reads:    reads,
		Recovery: restartAlways(),
		Probe:    bundle.Probe{Kind: bundle.ProbeTCP, Target: address, DeadlineSeconds: 60},
		Logs:     e.cluster.Settings.Logs.rotationOf(log, bundle.RotationAgent),
	})
}

func placesContent(t places.Table) (bundle.Content, error) { return encodedContent(t, t.Masked()) }

// encodedContent returns what is encoded, with its masked form for previews.
func encodedContent(all, masked interface{ Encode() ([]byte, error) }) (bundle.Content, error) {
	data, err := all.Encode()
	if err != nil {
		return bundle.Content{}, err
	}
	preview, err := masked.Encode()
	return maybeSecret(data, preview), err
}

// routedCauses are the objects because of which registries go through the gateway.
func (e *emitter) routedCauses() (refs []bundle.Ref) {
	for _, f := range e.hosts.Files {
		if f.Routed {
			refs = append(refs, f.Causes...)
		}
	}
	slices.SortFunc(refs, func(x, y bundle.Ref) int { return strings.Compare(x.String(), y.String()) })
	return slices.Compact(refs)
}
