package render

import (
	"slices"

	"wmco/bundle"
	"wmco/layout"
)

// tableEntries adds the entries that the catalog alone defines: folders, state and executables.
func (e *emitter) tableEntries() {
	for _, r := range Catalog() {
		if _, ok := e.wantedRow(r.ID); !ok || r.Optional {
			continue
		}
		switch r.Kind { //nolint:exhaustive // the views make the entries of all other kinds
		case bundle.KindDirectory:
			e.layer.Directories = append(
				e.layer.Directories, bundle.Directory{Path: r.Name, Access: r.Access, Exclusive: r.Exclusive},
			)
		case bundle.KindState:
			e.layer.State = append(e.layer.State, e.ownedState(r))
		case bundle.KindNetwork:
			e.layer.Networks = append(e.layer.Networks, bundle.Network{Name: r.Name, Cluster: e.cluster.InfrastructureName})
		case bundle.KindPayload:
			if !e.addExecutable(r) {
				continue
			}
		default: // made by its view
			continue
		}
		e.addCauses(r, r.Name)
	}
}

func (e *emitter) ownedState(r Row) bundle.State {
	isFile := slices.Contains([]string{fileKubeconfig, fileOverlayCert, fileLedgerCopy}, r.Name)
	s := bundle.State{Path: r.Name, File: isFile, Cluster: e.cluster.InfrastructureName}
	if r.Name == dirCNIConfig+`\`+layout.OverlayCertPattern {
		s.Path, s.Pattern, s.Keep = dirCNIConfig, layout.OverlayCertPattern, overlayCertsKept
	}
	return s
}

func (e *emitter) hostEntries() {
	if r, ok := e.wantedRow(rowMetadataRoute); ok {
		e.layer.Routes = append(e.layer.Routes, bundle.Route{Destination: r.Name, Via: bundle.ViaDefault, Impact: r.Impact})
		e.addCauses(r, r.Name)
	}
	for _, destination := range layout.AmazonRoutes() {
		if r, ok := e.wantedRow(routeRow(destination)); ok && !e.node.OlderAgent && !e.node.NoAmazonRoutes {
			e.layer.Routes = append(e.layer.Routes, bundle.Route{Destination: destination, Via: bundle.ViaDefault, Impact: r.Impact})
			e.addCauses(r, r.Name)
		}
	}
	if r, ok := e.wantedRow(rowContainers); ok {
		e.layer.Features = append(e.layer.Features, bundle.Feature{Name: r.Name, Impact: r.Impact})
	}
	for _, rule := range layout.Firewall() {
		if _, ok := e.wantedRow(firewallRow(rule.Name)); ok {
			e.layer.Firewall = append(e.layer.Firewall, rule)
		}
	}
	if r, ok := e.wantedRow(rowEndpoint); ok {
		e.layer.Endpoints = append(e.layer.Endpoints, bundle.Endpoint{
			Name: r.Name, Network: overlayNetwork, Compartment: layout.HostCompartment, Impact: r.Impact,
		})
	}
	if r, ok := e.wantedRow(rowHostName); ok {
		if name := e.node.requiredName(e.cluster.Platform); name != "" {
			e.layer.HostName = bundle.HostName{Name: name, Impact: r.Impact}
			e.addCauses(r, r.Name)
		}
	}
}
