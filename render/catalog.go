package render

import (
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/gateway/places"
	"wmco/layout"
	"wmco/payload"
	"wmco/payload/sources"
)

// RowID names a row of the catalog.
type RowID string

// Row is one thing that render can emit: what it is, which layer it belongs to, what a change of it costs and which
// inputs cause it. Every entry of a bundle has a row.
type Row struct {
	ID   RowID
	Kind bundle.EntryKind
	// Name is the entry's name. A row that stands for several entries has a <placeholder> in it.
	Name  string
	Layer bundle.LayerKind
	// JoinedOnly rows wait until the node exists. Those of its network also wait for its facts.
	JoinedOnly bool
	// Platforms is empty for a row of every platform.
	Platforms []bundle.Platform
	Access    bundle.Access
	Secret    bool
	Exclusive bool
	// Optional rows are emitted by the view that needs them.
	Optional bool
	Impact   bundle.Impact
	Causes   []Origin
	// Portable reports whether the entry means the same to the executables of every version of the operator. Only such
	// entries change on a node that waits for its executables (Keep).
	Portable bool
	// Doc is one sentence for the documentation of the node's layout.
	Doc string
	// Removal is what a reviewer should know when the entry is removed; empty if there is nothing to add.
	Removal string
}

// appliesTo reports whether the row is for a platform and stage.
func (r Row) appliesTo(p bundle.Platform, s bundle.Stage) bool {
	if r.JoinedOnly && s != bundle.StageJoined {
		return false
	}
	return len(r.Platforms) == 0 || slices.Contains(r.Platforms, p)
}

// isFamily reports whether the row stands for several entries.
func (r Row) isFamily() bool { return strings.Contains(r.Name, "<") }

// Rows of files.
const (
	rowKubeletConf         RowID = "kubelet.conf"
	rowKubeletCA           RowID = "kubelet-ca.crt"
	rowSigningKeys         RowID = "desired-state-keys.pem"
	rowBootstrapCA         RowID = "bootstrap-ca.crt"
	rowBootstrapKubeconfig RowID = "bootstrap-kubeconfig"
	rowAgentKubeconfig     RowID = "wicd-kubeconfig"
	rowCloudKubeconfig     RowID = "cloud-node-manager-kubeconfig"
	rowCredentialProvider  RowID = "credential-provider-config.yaml"
	rowCloudConf           RowID = "cloud.conf"
	rowTrustedCAs          RowID = "ca-bundle.crt"
	rowContainerdConf      RowID = "containerd_conf.toml"
	rowCNIConf             RowID = "cni.conf"
	rowKubeProxyConf       RowID = "kube-proxy.conf"
	rowExporterCert        RowID = "tls.crt"
	rowExporterKey         RowID = "tls.key"
	rowExporterConf        RowID = "windows-exporter-webconfig.yaml"
	rowHosts               RowID = "hosts.toml"
	rowPullCredentials     RowID = "config.json"
	rowPinnedImages        RowID = "pinned-images.json"
	rowPinnedCredentials   RowID = "pinned-images-credentials.json"
	rowPlaces              RowID = "places.json"
	rowExecutables         RowID = "executables.json"
)

// Rows of everything else that views emit by name; directories, state and executables are emitted by the table.
const (
	rowContainerd    RowID = "service/containerd"
	rowKubelet       RowID = "service/kubelet"
	rowExporter      RowID = "service/windows_exporter"
	rowCSIProxy      RowID = "service/csi-proxy"
	rowHybridOverlay RowID = "service/hybrid-overlay-node"
	rowKubeProxy     RowID = "service/kube-proxy"
	rowCloudManager  RowID = "service/cloud-node-manager"
	rowGateway       RowID = "service/image-gateway"
	rowGatewayFolder RowID = "directory/registry"
	rowGatewayLogs   RowID = "directory/registry-logs"
	rowGatewayCounts RowID = "state/registry-metrics"
	rowGatewayState  RowID = "state/registry"
	rowAgent         RowID = "service/windows-instance-config-daemon"
	rowVariable      RowID = "variable/proxy"
	rowEnvironment   RowID = "environment/proxy"
	rowRootCA        RowID = "trusted-ca"
	rowAuthorizedKey RowID = "authorized-key"
	rowMetadataRoute RowID = "route/metadata"
	rowContainers    RowID = "feature/Containers"
	rowExclusion     RowID = "exclusion/containerd"
	rowPolicyUpdates RowID = "policy/updates"
	rowEndpoint      RowID = "endpoint/vip"
	rowHostName      RowID = "host-name"
)

// Catalog returns every row, in the order of the documentation.
func Catalog() []Row {
	return slices.Concat(directoryRows(), stateRows(), clusterFileRows(), nodeFileRows(), serviceRows(), hostRows(), payloadRows())
}

// FindRow returns the row that an entry comes from.
func FindRow(id bundle.EntryID) (Row, bool) {
	kind, name, _ := strings.Cut(string(id), " ")
	var family Row
	for _, r := range Catalog() {
		if string(r.Kind) != kind {
			continue
		}
		if r.Name == name {
			return r, true
		}
		if r.isFamily() {
			family = r
		}
	}
	return family, family.ID != ""
}

func directoryRows() []Row {
	dir := func(path string, access bundle.Access, doc string) Row {
		return Row{ID: RowID("directory/" + path), Kind: bundle.KindDirectory, Name: path, Layer: bundle.LayerCluster, Access: access, Impact: bundle.ImpactNone, Doc: doc}
	}
	registries := dir(dirRegistries, bundle.AccessAdmins, "containerd's registry configuration, one folder per registry; everything unmanaged in it is removed")
	registries.Exclusive = true
	rows := []Row{
		dir(dirRoot, bundle.AccessUsers, "everything that runs on the node"),
		dir(dirAgent, bundle.AccessUsers, "the node agent, one file per version"),
		dir(dirContainerd, bundle.AccessUsers, "containerd and its configuration"),
		registries,
		dir(dirCNI, bundle.AccessUsers, "CNI plugins"),
		dir(dirCNIConfig, bundle.AccessAdmins, "CNI configuration and the client certificates of hybrid-overlay-node"),
		dir(dirManifests, bundle.AccessAdmins, "static pods"),
		dir(dirVolumes, bundle.AccessAdmins, "FlexVolume drivers of administrators, which the kubelet runs"),
		dir(dirTLS, bundle.AccessUsers, "web configuration of windows_exporter"),
		dir(dirTLSCerts, bundle.AccessAdmins, "certificate and key of windows_exporter"),
		dir(dirLogs, bundle.AccessUsers, "logs, as must-gather and oc adm node-logs read them"),
	}
	for _, name := range []string{"containerd", "csi-proxy", "hybrid-overlay", "kube-proxy", "kubelet", "wicd", "windows_exporter"} {
		rows = append(rows, dir(dirLogs+`\`+name, bundle.AccessUsers, "logs of "+name))
	}
	cloudLogs := dir(dirLogs+`\cloud-node-manager`, bundle.AccessUsers, "logs of cloud-node-manager")
	cloudLogs.Platforms = []bundle.Platform{bundle.PlatformAzure}
	gateway, gatewayLogs := dir(dirGateway, bundle.AccessAdmins, "files of the image gateway"+onlyExact), dir(dirGatewayLogs, bundle.AccessUsers, "logs of the image gateway"+onlyExact)
	gateway.ID, gateway.Optional, gatewayLogs.ID, gatewayLogs.Optional = rowGatewayFolder, true, rowGatewayLogs, true
	return append(rows, cloudLogs, gateway, gatewayLogs)
}

// onlyExact ends the documentation of what the gateway needs.
const onlyExact = "; only with `mirrors.mode: Exact`"

func stateRows() []Row {
	state := func(path, doc string) Row {
		return Row{
			ID: RowID("state/" + path), Kind: bundle.KindState, Name: path, Layer: bundle.LayerCluster, Impact: bundle.ImpactNone,
			Causes: []Origin{FromInfrastructure}, Doc: doc,
		}
	}
	network := func(name, doc string) Row {
		r := state(name, doc)
		r.ID, r.Kind = RowID("network/"+name), bundle.KindNetwork
		return r
	}
	cloudCerts := state(dirCloudCerts, "client certificates of cloud-node-manager")
	cloudCerts.Platforms = []bundle.Platform{bundle.PlatformAzure}
	gatewayState := state(places.State, "certificates of the image gateway and of containerd for it, and its list of registries that cannot be pulled from; cleared"+onlyExact)
	gatewayState.ID, gatewayState.Optional = rowGatewayState, true
	counts := state(places.Metrics, "numbers of the image gateway, which windows_exporter reads; cleared"+onlyExact)
	counts.ID, counts.Optional = rowGatewayCounts, true
	return []Row{
		gatewayState, counts,
		state(dirCNIState, "addresses given to pods; cleared"),
		state(dirKubeletCerts, "the kubelet's certificates; cleared"),
		state(dirAgentCerts, "client certificates of the existing operator's agent; cleared"),
		cloudCerts,
		state(fileKubeconfig, "the kubelet's kubeconfig, which the kubelet writes; cleared"),
		state(dirCNIConfig+`\`+layout.OverlayCertPattern, "client certificates of hybrid-overlay-node; the newest are kept"),
		state(fileOverlayCert, "link to the client certificate that hybrid-overlay-node uses; cleared"),
		state(fileLedgerCopy, "the managed entries of the node, without contents, for must-gather; written by the node agent"),
		network(baseNetwork, "the HNS network below the overlay, created by hybrid-overlay-node; cleared"),
		network(overlayNetwork, "the HNS network of pods, created by hybrid-overlay-node; cleared"),
	}
}

func portable(r Row) Row {
	r.Portable = true
	return r
}

func clusterFileRows() []Row {
	file := func(id RowID, path string, impact bundle.Impact, doc string, causes ...Origin) Row {
		return Row{ID: id, Kind: bundle.KindFile, Name: path, Layer: bundle.LayerCluster, Access: bundle.AccessUsers, Impact: impact, Causes: causes, Doc: doc}
	}
	secret := func(r Row) Row { r.Secret, r.Access = true, bundle.AccessAdmins; return r }
	admins := func(r Row) Row { r.Access = bundle.AccessAdmins; return r }
	joined := func(r Row) Row { r.JoinedOnly = true; return r }
	only := func(r Row, p ...bundle.Platform) Row { r.Platforms = p; return r }
	removal := func(r Row, warning string) Row { r.Removal = warning; return r }
	return []Row{
		file(rowKubeletConf, fileKubeletConf, bundle.ImpactRestart, "configuration of the kubelet", FromSettings, FromClusterNetwork, FromAPIServer, FromVersion),
		// The kubelet reloads its client CA (k8s.io/apiserver dynamiccertificates), so a rotation restarts nothing.
		portable(file(rowKubeletCA, fileKubeletCA, bundle.ImpactNone, "CAs whose clients may call the kubelet", FromControllers)),
		// The agent reads it whenever something else is published.
		portable(admins(file(rowSigningKeys, bundle.SigningKeysFile, bundle.ImpactNone, "public keys of the operator, which signs what it publishes for the node; only in bundles of the operator", FromOperator))),
		// Read when a service starts without a client certificate; a running service does not read it again.
		portable(file(rowBootstrapCA, fileBootstrapCA, bundle.ImpactNone, "CA of the API server", FromBootstrap)),
		portable(secret(file(rowBootstrapKubeconfig, fileBootstrapKubeconfig, bundle.ImpactNone, "identity with which a host joins the cluster", FromInfrastructure, FromBootstrap))),
		file(rowContainerdConf, fileContainerdConf, bundle.ImpactRestart, "configuration of containerd", FromSettings),
		removal(portable(secret(file(rowHosts, dirRegistries+`\<registry>\hosts.toml`, bundle.ImpactNone, "mirrors of a registry, with their credentials; read on every pull", FromMirrors, FromImage, FromPullSecret))),
			"images of this registry are then pulled from the registry itself, which a disconnected cluster cannot reach"),
		// The gateway looks at the file with each request.
		portable(secret(file(rowPlaces, places.File, bundle.ImpactNone, "mirrors and registries that the image gateway asks, with the credentials of mirrors"+onlyExact, FromMirrors, FromImage, FromPullSecret))),
		// A kubelet reads it again after five minutes (k8s.io/kubernetes pkg/credentialprovider, CachingDockerConfigProvider).
		portable(secret(file(rowPullCredentials, filePullCredentials, bundle.ImpactNone, "credentials of the pull secret with which the kubelet pulls images; not those of registries that have mirrors", FromPullSecret, FromMirrors, FromSettings))),
		portable(file(rowTrustedCAs, fileTrustedCAs, bundle.ImpactNone, "trusted CAs of the cluster", FromTrustedCA, FromControllers)),
		only(file(rowCredentialProvider, fileCredentialProvider, bundle.ImpactRestart, "configuration of the cloud's credential provider, without registries that have mirrors", FromMachineConfig, FromMirrors), bundle.PlatformAWS, bundle.PlatformAzure, bundle.PlatformGCP),
		// acr-credential-provider reads it each time that the kubelet starts it.
		only(file(rowCloudConf, fileCloudConf, bundle.ImpactNone, "the managed identity with which acr-credential-provider gets credentials; no secrets", FromMachineConfig), bundle.PlatformAzure),
		joined(file(rowAgentKubeconfig, fileAgentKubeconfig, bundle.ImpactRestart, "how the node agent reaches the API server, as the node itself", FromInfrastructure)),
		joined(only(file(rowCloudKubeconfig, fileCloudKubeconfig, bundle.ImpactRestart, "how cloud-node-manager reaches the API server", FromInfrastructure), bundle.PlatformAzure)),
		// windows_exporter reads its web configuration and certificate for every connection (exporter-toolkit).
		joined(portable(secret(file(rowExporterKey, fileExporterKey, bundle.ImpactNone, "key of windows_exporter", FromExporterTLS)))),
		joined(portable(file(rowExporterCert, fileExporterCert, bundle.ImpactNone, "certificate of windows_exporter", FromExporterTLS))),
		joined(portable(file(rowPinnedImages, bundle.PinnedImagesFile, bundle.ImpactNone, "images that the node agent has containerd pull and pin; only where a PinnedImageSet is for Windows nodes", FromPinnedImages))),
		joined(portable(secret(file(rowPinnedCredentials, bundle.PinnedCredentialsFile, bundle.ImpactNone, "credentials of the pull secret with which these images are pulled from their registries; only where one needs them", FromPinnedImages, FromPullSecret)))),
		// The node agent reads it when the operator permits it to fetch.
		joined(portable(secret(file(rowExecutables, sources.File, bundle.ImpactNone, "executables, and where the node agent fetches them; only if the operator knows its image", FromOperator, FromMirrors, FromImage, FromPullSecret, FromSettings)))),
		joined(file(rowExporterConf, fileExporterConf, bundle.ImpactRestart, "web configuration of windows_exporter", FromAPIServer)),
	}
}

func nodeFileRows() []Row {
	file := func(id RowID, path string, impact bundle.Impact, doc string, causes ...Origin) Row {
		return Row{
			ID: id, Kind: bundle.KindFile, Name: path, Layer: bundle.LayerNode, JoinedOnly: true, Access: bundle.AccessUsers,
			Impact: impact, Causes: causes, Doc: doc,
		}
	}
	return []Row{
		// containerd watches its CNI folder (io.containerd.cri.v1.runtime, go-cni), so a change is read at once.
		file(rowCNIConf, fileCNIConf, bundle.ImpactNone, "the pod network of the node", FromNode, FromClusterNetwork),
		file(rowKubeProxyConf, fileKubeProxyConf, bundle.ImpactRestart, "configuration of kube-proxy", FromNode, FromSettings, FromVersion),
	}
}

func serviceRows() []Row {
	service := func(id RowID, name string, layer bundle.LayerKind, doc string, causes ...Origin) Row {
		return Row{ID: id, Kind: bundle.KindService, Name: name, Layer: layer, Impact: bundle.ImpactRestart, Causes: append(causes, FromSettings, FromOperator), Doc: doc}
	}
	joined := func(r Row) Row { r.JoinedOnly = true; return r }
	cloud := joined(service(rowCloudManager, svcCloudManager, bundle.LayerNode, "initializes the Node on Azure", FromNode))
	cloud.Platforms = []bundle.Platform{bundle.PlatformAzure}
	return []Row{
		service(rowGateway, svcGateway, bundle.LayerCluster, "images from mirrors that containerd's hosts files cannot express"+onlyExact, FromMirrors),
		service(rowContainerd, svcContainerd, bundle.LayerCluster, "the container runtime"),
		service(rowKubelet, svcKubelet, bundle.LayerNode, "the kubelet", FromMachineConfig, FromNode, FromMachine, FromInstances),
		joined(service(rowExporter, svcExporter, bundle.LayerCluster, "metrics of the host, port 9182")),
		joined(service(rowCSIProxy, svcCSIProxy, bundle.LayerCluster, "storage operations for CSI drivers")),
		joined(service(rowHybridOverlay, svcHybridOverlay, bundle.LayerNode, "the overlay network to Linux nodes", FromOperatorNetwork, FromInfrastructure, FromNode)),
		joined(service(rowKubeProxy, svcKubeProxy, bundle.LayerNode, "Services of the cluster on this node")),
		cloud,
		joined(service(rowAgent, svcAgent, bundle.LayerCluster, "the node agent: pulls the node's bundle and repairs drift")),
	}
}

func hostRows() []Row {
	row := func(id RowID, kind bundle.EntryKind, name string, impact bundle.Impact, doc string, causes ...Origin) Row {
		return Row{ID: id, Kind: kind, Name: name, Layer: bundle.LayerCluster, Impact: impact, Causes: causes, Doc: doc}
	}
	route := row(rowMetadataRoute, bundle.KindRoute, metadataRoute, bundle.ImpactNone, "instance metadata; Windows loses this and other link-local routes when HNS networks change or the host reboots", FromInfrastructure)
	route.Platforms = []bundle.Platform{bundle.PlatformAWS, bundle.PlatformGCP}
	endpoint := row(rowEndpoint, bundle.KindEndpoint, vipEndpoint, bundle.ImpactNone, "the source address of kube-proxy's load balancing")
	endpoint.JoinedOnly = true
	key := row(rowAuthorizedKey, bundle.KindAuthorizedKey, "<fingerprint>", bundle.ImpactNone, "a public key of the operator in "+bundle.AuthorizedKeysFile+"; only in bundles of the operator", FromPrivateKey)
	key.Layer, key.JoinedOnly = bundle.LayerNode, true
	updates := row(rowPolicyUpdates, bundle.KindPolicy, bundle.PolicyUpdates, bundle.ImpactNone, "below `HKLM\\"+bundle.PoliciesKey+"`: Windows installs no updates and does not reboot on its own; only with `windowsReboots: Coordinate`", FromSettings)
	updates.Layer, updates.JoinedOnly = bundle.LayerNode, true
	host := row(rowHostName, bundle.KindHostName, bundle.Computer, bundle.ImpactReboot, "the computer's name, which is that of its Machine", FromMachine)
	host.Layer, host.Platforms = bundle.LayerNode, []bundle.Platform{bundle.PlatformVSphere, bundle.PlatformNutanix}
	rows := []Row{
		portable(row(rowVariable, bundle.KindVariable, "<HTTP_PROXY, HTTPS_PROXY, NO_PROXY>", bundle.ImpactNone, "the proxy for users and other programs on the host", FromProxy, FromOperator)),
		portable(row(rowEnvironment, bundle.KindEnvironment, proxyEnvironment, bundle.ImpactRestart, "the proxy for the services, in the Environment value of each", FromProxy, FromOperator)),
		portable(row(rowRootCA, bundle.KindTrustedCA, "<fingerprint>", bundle.ImpactNone, "a trusted CA in LocalMachine\\Root", FromTrustedCA, FromControllers)),
		key,
		route,
	}
	for _, destination := range layout.AmazonRoutes() {
		r := row(routeRow(destination), bundle.KindRoute, destination, bundle.ImpactNone, amazonDoc(destination), FromInfrastructure)
		r.Layer, r.JoinedOnly, r.Platforms = bundle.LayerNode, true, []bundle.Platform{bundle.PlatformAWS}
		rows = append(rows, r)
	}
	rows = append(rows,
		row(rowContainers, bundle.KindFeature, layout.FeatureContainers, bundle.ImpactReboot, "Windows containers"),
	)
	for _, r := range layout.Firewall() {
		rows = append(rows, row(firewallRow(r.Name), bundle.KindFirewall, r.Name, r.Impact, portDoc(r.Name)))
	}
	return append(rows,
		row(rowExclusion, bundle.KindExclusion, layout.Exclusion(), bundle.ImpactNone, "Defender, where it runs, does not scan containerd"),
		updates,
		endpoint,
		host,
	)
}

// payloadRows returns the rows of the executables. A new version restarts the services that run it; for the kubelet and
// containerd the node is drained first (kubernetes.io/docs/tasks/administer-cluster/cluster-upgrade).
func payloadRows() []Row {
	var rows []Row
	for _, e := range payload.Programs() {
		r := Row{ID: executableRow(e.Program), Kind: bundle.KindPayload, Name: e.Path, Layer: bundle.LayerCluster, Platforms: e.Platforms, Impact: bundle.ImpactRestart, Doc: e.Module}
		switch e.Program {
		case payload.Agent:
			r.Name, r.Doc = payload.AgentPattern(), "the node agent; only with --payload"
		case payload.Kubelet, payload.Containerd:
			r.Impact = bundle.ImpactDrain
		case payload.KubeLogRunner:
		case payload.Shim, payload.ACRProvider, payload.ECRProvider, payload.GCRProvider:
			// Started for each pod or image pull.
			r.Impact = bundle.ImpactNone
		case payload.Verifier:
			// Started for each image.
			r.Impact, r.Optional, r.Causes, r.Doc = bundle.ImpactNone, true, []Origin{FromMirrors}, "verifies signatures of images; only with `mirrors.mode: Exact` and a ClusterImagePolicy"
		case payload.WinOverlay, payload.WinBridge, payload.HostLocal:
			r.Impact, r.JoinedOnly = bundle.ImpactNone, true
		default:
			r.JoinedOnly = true
		}
		if e.Kubernetes != "" {
			r.Causes = []Origin{FromVersion, FromMachineConfig}
		}
		rows = append(rows, r)
	}
	return rows
}

// routeRow is the row of a route.
func routeRow(destination string) RowID { return RowID("route/" + destination) }

// amazonDoc describes a link-local address of AWS (docs.aws.amazon.com/AWSEC2/latest/UserGuide).
func amazonDoc(destination string) string {
	switch destination {
	case "169.254.169.123/32":
		return "Amazon Time Sync"
	case "169.254.169.253/32":
		return "Amazon DNS"
	}
	return "activation of Windows"
}

// firewallRow is the row of a firewall rule.
func firewallRow(name string) RowID { return RowID("firewall/" + name) }

// executableRow is the row of a program of the payload's table.
func executableRow(program string) RowID { return RowID("payload/" + program) }
