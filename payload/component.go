package payload

import (
	"strings"

	"wmco/bundle"
)

// Component is one pinned Go module from which executables are built: the folder payload/<name> holds a go.mod and a
// go.sum, and no Go files unless the program is ours.
type Component struct {
	// Name is the name of the folder. PAYLOAD= selects the component by it.
	Name string
	// Module and Version are the pinned module. Version is empty in the component Ours: the build gives it.
	Module  string
	Version string
	// Tags are build tags.
	Tags []string
	// Variables are set by the linker (-X), so that a program reports its version.
	Variables []string
	// Debug are the GODEBUG settings of the go.mod. They repeat those of upstream's go.mod, because Go reads them from
	// the main module only. They are empty if upstream's defaults equal those of our Go.
	Debug []string
	// Executables are the programs of the component. Fields that they share with it may be empty.
	Executables []Executable
	// Patches are made in a copy of the module before it is built.
	Patches []Patch
}

// Ours is the name of the component that is built from the main module.
const Ours = "wmco-node"

// IsOurs reports whether the programs of a component are of this repository.
func (c Component) IsOurs() bool { return strings.HasPrefix(c.Executables[0].Package, "wmco/") }

// OurVersion is the variable for the version in programs of this module.
const OurVersion = "main.version"

// OurSources is the variable for the URL below which the files of the release can be read.
const OurSources = "main.sourceTree"

// Components returns every component, the slowest to build first.
func Components() []Component {
	var all []Component
	for _, r := range Releases() {
		all = append(all, kubernetes(r))
	}
	return append(all, azure(), hybridOverlay(), csiProxy(), containerd(), ecr(), gcp(), exporter(), shim(), cni(), kubeLogRunner(), verifier(), ours())
}

func containerd() Component {
	const module = "github.com/containerd/containerd/v2"
	return Component{
		Name: "containerd", Module: module, Version: ContainerdVersion,
		Variables: []string{module + "/version.Version=" + ContainerdVersion},
		Executables: []Executable{{
			Name: Containerd, Path: `C:\k\containerd\containerd.exe`, Package: module + "/cmd/containerd",
			VersionCommand: VersionCommand{Args: []string{"--version"}, Prints: module + " " + ContainerdVersion},
		}},
	}
}

func shim() Component {
	return Component{
		Name: "hcsshim", Module: "github.com/Microsoft/hcsshim", Version: ShimVersion, Debug: []string{"default=go1.23"},
		Variables: []string{"main.version=" + ShimVersion},
		Executables: []Executable{{
			Name: Shim, Path: `C:\k\containerd\containerd-shim-runhcs-v1.exe`, Package: "github.com/Microsoft/hcsshim/cmd/containerd-shim-runhcs-v1",
			VersionCommand: VersionCommand{Args: []string{"--version"}, Prints: ShimVersion},
		}},
	}
}

func cni() Component {
	const module = "github.com/containernetworking/plugins"
	plugin := func(name, pkg string) Executable {
		// A plugin without a command prints its version.
		return Executable{
			Name: name, Path: `C:\k\cni\` + name + ".exe", Package: module + pkg + name,
			VersionCommand: VersionCommand{Prints: "plugin " + CNIVersion},
		}
	}
	return Component{
		Name: "cni", Module: module, Version: CNIVersion,
		Variables: []string{module + "/pkg/utils/buildversion.BuildVersion=" + CNIVersion},
		Executables: []Executable{
			plugin(HostLocal, "/plugins/ipam/"), plugin(WinBridge, "/plugins/main/windows/"),
			plugin(WinOverlay, "/plugins/main/windows/"),
		},
	}
}

func csiProxy() Component {
	const module = "github.com/kubernetes-csi/csi-proxy"
	return Component{
		Name: "csi-proxy", Module: module, Version: CSIProxyVersion, Debug: []string{"default=go1.24", "winsymlink=0"},
		Variables: []string{"main.version=" + CSIProxyVersion},
		Executables: []Executable{{
			Name: CSIProxy, Path: `C:\k\csi-proxy.exe`, Package: module + "/cmd/csi-proxy",
			// It logs its version when it starts, and exits because it cannot listen on this address.
			VersionCommand: VersionCommand{Args: []string{"--metrics-bind-address=none"}, Prints: "Version: " + CSIProxyVersion},
		}},
	}
}

func exporter() Component {
	const module = "github.com/prometheus-community/windows_exporter"
	version := strings.TrimPrefix(ExporterVersion, "v")
	return Component{
		Name: "windows-exporter", Module: module, Version: ExporterVersion, Debug: []string{"default=go1.25"},
		Variables: []string{"github.com/prometheus/common/version.Version=" + version},
		Executables: []Executable{{
			Name: Exporter, Path: `C:\k\windows_exporter.exe`, Package: module + "/cmd/windows_exporter",
			VersionCommand: VersionCommand{Args: []string{"--version"}, Prints: "windows_exporter, version " + version},
		}},
	}
}

func hybridOverlay() Component {
	const module = "github.com/ovn-kubernetes/ovn-kubernetes/go-controller"
	return Component{
		Name: "hybrid-overlay", Module: module, Version: HybridOverlayVersion, Debug: []string{"default=go1.25"},
		Variables: []string{module + "/pkg/config.Version=" + HybridOverlayVersion},
		Executables: []Executable{{
			Name: HybridOverlay, Path: `C:\k\hybrid-overlay-node.exe`, Package: module + "/hybrid-overlay/cmd/hybrid-overlay-node",
			VersionCommand: VersionCommand{Args: []string{"--version"}, Prints: HybridOverlayVersion},
		}},
	}
}

func ecr() Component {
	const module = "k8s.io/cloud-provider-aws"
	return Component{
		Name: "ecr", Module: module, Version: ECRVersion,
		Variables: []string{"main.gitVersion=" + ECRVersion},
		Executables: []Executable{{
			Name: ECRProvider, Path: `C:\k\ecr-credential-provider.exe`, Package: module + "/cmd/ecr-credential-provider",
			Platforms: []bundle.Platform{bundle.PlatformAWS}, VersionCommand: VersionCommand{Args: []string{"--version"}, Prints: ECRVersion},
		}},
	}
}

func azure() Component {
	const module = "sigs.k8s.io/cloud-provider-azure"
	return Component{
		Name: "azure", Module: module, Version: AzureVersion,
		Variables: []string{module + "/pkg/version.gitVersion=" + AzureVersion},
		Executables: []Executable{{
			Name: CloudManager, Path: `C:\k\azure-cloud-node-manager.exe`, Package: module + "/cmd/cloud-node-manager",
			Platforms: []bundle.Platform{bundle.PlatformAzure}, VersionCommand: VersionCommand{Args: []string{"--version"}, Prints: AzureVersion},
		}, {
			Name: ACRProvider, Path: `C:\k\acr-credential-provider.exe`, Package: module + "/cmd/acr-credential-provider",
			Platforms: []bundle.Platform{bundle.PlatformAzure}, VersionCommand: VersionCommand{Args: []string{"--version"}, Prints: AzureVersion},
		}},
	}
}

// gcp has the provider of Google Cloud under the name that OpenShift gives it. The program knows no version of its own.
func gcp() Component {
	const module = "k8s.io/cloud-provider-gcp"
	return Component{
		Name: "gcp", Module: module, Version: GCRVersion, Debug: []string{"default=go1.22"},
		Executables: []Executable{{
			Name: GCRProvider, Path: `C:\k\gcr-credential-provider.exe`, Package: module + "/cmd/auth-provider-gcp",
			Platforms: []bundle.Platform{bundle.PlatformGCP}, VersionCommand: VersionCommand{Prints: "GCP CRI authentication plugin"},
		}},
	}
}

// verifier is our program with the code of Linux nodes: the node agent must not link what it links.
func verifier() Component {
	return Component{
		Name: "image-verifier", Module: "go.podman.io/image/v5", Version: ImageVersion,
		Tags: []string{"containers_image_openpgp"}, Variables: []string{"main.version=" + ImageVersion},
		Executables: []Executable{{
			Name: Verifier, Path: `C:\k\image-verifier.exe`, Package: "wmco/payload/image-verifier",
			VersionCommand: VersionCommand{Args: []string{"version"}, Prints: ImageVersion},
		}},
	}
}

func ours() Component {
	return Component{
		Name: Ours, Module: "wmco",
		Executables: []Executable{{
			Name: Agent, Path: `C:\k\agent\wmco-node.exe`, Package: "wmco/cmd/wmco-node",
			VersionCommand: VersionCommand{Args: []string{"version"}},
		}},
	}
}
