package resolvers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"wmco/bundle"
	"wmco/gateway/places"
	"wmco/render"
	"wmco/render/mirrors"
)

// registries is the folder of the hosts files on a node.
const registries = `C:\k\containerd\registries\`

// Files are the hosts files of a cluster: the contents by the name of the directory.
type Files map[string]string

// Render returns the hosts files of a minimal cluster with these inputs. If the findings have an error, there are no
// files.
func Render(in mirrors.Inputs, partial mirrors.PartialNever) (Files, bundle.Findings, error) {
	files, _, findings, err := renderFiles(in, render.MirrorSettings{PartialNever: partial})
	return files, findings, err
}

// RenderExact is Render with the gateway of the node at a port of 127.0.0.1, and the content of the gateway's file.
func RenderExact(in mirrors.Inputs, port int) (Files, []byte, bundle.Findings, error) {
	return renderFiles(in, render.MirrorSettings{PartialNever: mirrors.Closed, Mode: mirrors.Exact, GatewayPort: port})
}

func renderFiles(in mirrors.Inputs, settings render.MirrorSettings) (Files, []byte, bundle.Findings, error) {
	fleet, findings, err := render.NewFleet(cluster(in, settings), render.Options{})
	if err != nil || fleet == nil {
		return nil, nil, findings, err
	}
	b, more, err := fleet.Node(someNode())
	if err != nil || more.Refused() {
		return nil, nil, more, fmt.Errorf("rendering the node: %w %+v", err, more)
	}
	files := Files{}
	var table []byte
	for _, f := range b.Files() {
		if rest, ok := strings.CutPrefix(f.Path, registries); ok {
			files[strings.TrimSuffix(rest, `\hosts.toml`)] = string(f.Content.Data)
		}
		if f.Path == places.File {
			table = f.Content.Data
		}
	}
	return files, table, findings, nil
}

// Write puts the files below root, one directory each, as they are on a node.
func (f Files) Write(root string) error {
	for directory, text := range f {
		if err := os.MkdirAll(filepath.Join(root, directory), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, directory, "hosts.toml"), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// cluster returns the smallest inputs that render.
func cluster(in mirrors.Inputs, settings render.MirrorSettings) render.Cluster {
	c := render.Cluster{
		Platform: bundle.PlatformNone, InfrastructureName: "example-x7k2p", APIServerInternalURL: "https://api-int.example.com:6443",
		Network: render.Network{
			Type: "OVNKubernetes", ServiceNetworks: []string{"172.30.0.0/16"}, HybridOverlay: true,
			HybridNetworks: []string{"10.132.0.0/14"},
		},
		KubeletClientCA: certificate, Bootstrap: render.Bootstrap{CA: certificate, Token: bundle.NewSecret("token")},
		Settings: render.DefaultSettings(), Mirrors: in,
		Origins: render.Origins{
			render.FromInfrastructure:  {Kind: "Infrastructure", Name: "cluster"},
			render.FromClusterNetwork:  {Kind: "Network", Name: "cluster"},
			render.FromOperatorNetwork: {Kind: "Network", Name: "cluster"},
		},
	}
	c.Settings.Mirrors = settings
	return c
}

func someNode() render.Node {
	return render.Node{Name: "win-a", Backing: render.BackingInstance, Address: "10.0.0.5", Facts: bundle.Facts{
		Schema: 1, HostName: "win-a", Addresses: []string{"10.0.0.5"}, DefaultRoute: bundle.DefaultRoute{Address: "10.0.0.5"}, OSBuild: "10.0.20348",
	}}
}

// certificate returns the certificate of a test CA.
const certificate = `-----BEGIN CERTIFICATE-----
MIIBpjCCAUygAwIBAgIIBjC9tH4EZfgwCgYIKoZIzj0EAwIwNzESMBAGA1UECxMJ
b3BlbnNoaWZ0MSEwHwYDVQQDExhrdWJlLWFwaXNlcnZlci1sYi1zaWduZXIwHhcN
MjUwMTAxMDAwMDAwWhcNNDUwMTAxMDAwMDAwWjA3MRIwEAYDVQQLEwlvcGVuc2hp
ZnQxITAfBgNVBAMTGGt1YmUtYXBpc2VydmVyLWxiLXNpZ25lcjBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABK/pKbzqZkniamY1phJxeeX39N29WvgGtsQBsnHuyevo
j4ljNOgN7314tn1iC+VFTepNpMPYahKkqJ9uogFKW7ajQjBAMA4GA1UdDwEB/wQE
AwIChDAPBgNVHRMBAf8EBTADAQH/MB0GA1UdDgQWBBRjzN+ZroGmy7weDpAjHRjo
AdiJ8DAKBggqhkjOPQQDAgNIADBFAiAcp/2cOFMGPz280hDKMB1iowPo4WPw5Lsn
7Aa80ejbGQIhAPzFbd9hw5DLwaSJlYOEhqLi9/JnfYwwl1Eg+l52VqTX
-----END CERTIFICATE-----
`
