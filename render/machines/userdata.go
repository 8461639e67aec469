package machines

import (
	"fmt"
	"slices"
	"strings"
	"text/template"

	"wmco/bundle"
	"wmco/layout"
	"wmco/templates"
)

// The Secret with the user data. Its name and key are those of the existing operator.
const (
	UserDataSecret = "windows-user-data"
	UserDataKey    = "userData"
	// Namespace is the namespace of the Machine API, and of everything here.
	Namespace = "openshift-machine-api"
	// ClusterAPINamespace is the namespace of the Cluster API, where the cluster has one.
	ClusterAPINamespace = "openshift-cluster-api"
)

const (
	// administrator is the account that the operator logs in to if the cloud creates no other.
	administrator = "Administrator"
	// launchVersion is the first EC2Launch v2 whose add-routes knows --persistent.
	launchVersion = "2.0.2107"
	// launchInstaller is the last one before 2.3.5, from which on EC2Launch conflicts with HNS networks
	// (github.com/openshift/windows-machine-config-operator, pull requests 3590 and 3591).
	launchInstaller = "https://s3.amazonaws.com/amazon-ec2launch-v2/windows/amd64/2.2.63/AmazonEC2Launch.msi"
)

// userData is the view of the template.
type userData struct {
	PublicKey string
	Firewall  []bundle.FirewallRule
	// ExistingHost is true for a host that may have other administrators: their keys and ways to log in stay.
	ExistingHost bool
	// Administrator is empty if the cloud, or who owns the host, creates the account that the operator logs in to.
	Administrator string
	// MetadataRoutes asks EC2Launch to keep the routes to the metadata service.
	MetadataRoutes bool
	// AgentService is the service of the node agent, which keeps these routes on a node.
	AgentService    string
	LaunchVersion   string
	LaunchInstaller string
}

// UserData returns the Script as the agent of the platform's images runs it: at every start, and in tags but on GCP.
func UserData(p bundle.Platform, publicKey string) (string, error) {
	if !slices.Contains(Platforms(), p) {
		return "", fmt.Errorf("platform %q has no user data: it is none of %s", p, platformNames(", "))
	}
	script, err := Script(p, publicKey)
	if err != nil || p == bundle.PlatformGCP {
		return script, err
	}
	return "<powershell>\n" + script + "</powershell>\n<persist>true</persist>\n", nil
}

// Script returns the PowerShell with which a Windows host accepts logins with the key: a new machine of the platform,
// or a host that exists for PlatformNone. publicKey is the contents of a public key file; an error about it wraps
// ErrPublicKey. The same platform and key give the same bytes.
func Script(p bundle.Platform, publicKey string) (string, error) {
	key, err := PublicKey(publicKey)
	if err != nil {
		return "", err
	}
	view := userData{
		PublicKey: key, ExistingHost: p == bundle.PlatformNone, Firewall: layout.Firewall(), Administrator: administrator,
		MetadataRoutes: p == bundle.PlatformAWS, AgentService: layout.Agent, LaunchVersion: launchVersion, LaunchInstaller: launchInstaller,
	}
	if p == bundle.PlatformAzure || p == bundle.PlatformNone {
		view.Administrator = "" // Azure creates the account capi, and the entry of a host names one that it has
	}
	return view.script()
}

func (v userData) script() (string, error) {
	const name = "userdata.ps1.tmpl"
	funcs := template.FuncMap{"ps": bundle.PowerShell}
	set, err := template.New(name).Option("missingkey=error").Funcs(funcs).ParseFS(templates.FS, name)
	if err != nil {
		return "", fmt.Errorf("parsing templates: %w", err)
	}
	var out strings.Builder
	if err := set.Execute(&out, v); err != nil {
		return "", fmt.Errorf("rendering user data: %w", err)
	}
	return out.String(), nil
}

// Secret returns the Secret with the user data, which MachineSets refer to.
func Secret(userData string) Manifest {
	return Manifest{Object: object{
		"apiVersion": "v1",
		"kind":       "Secret",
		"metadata":   object{"name": UserDataSecret, "namespace": Namespace},
		"type":       "Opaque",
		"stringData": object{UserDataKey: userData},
	}}
}
