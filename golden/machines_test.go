package golden

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/layout"
	"wmco/render/machines"
)

// machineSets are the MachineSets of golden/machines: for every platform, one made from a MachineSet of Linux Machines
// (worker.yaml), one from the Windows MachineSet of the cluster, and one from flags only.
var machineSets = map[bundle.Platform]map[string]machines.Options{
	bundle.PlatformAWS: {
		"from-worker": {
			Name: "example-7k2vd-windows-eu-central-1c", Model: "example-7k2vd-worker-eu-central-1a", Zone: "eu-central-1c",
			Image: "ami-0823a3180dad3c9c3", InstanceType: "m6i.2xlarge",
		},
		"from-windows": {Name: "winworker", Zone: "eu-central-1b"},
		"from-flags": {
			Name: "winworker", Zone: "eu-central-1a", Image: "ami-0823a3180dad3c9c3", InstanceType: "m6i.xlarge",
			Set: []string{"placement.region=eu-central-1", "subnet.id=subnet-0a1b2c3d", "securityGroups[0].id=sg-0a1b2c3d", "iamInstanceProfile.id=example-7k2vd-worker-profile"},
		},
	},
	bundle.PlatformAzure: {
		"from-worker": {
			Name: "winworker", Model: "example-7k2vd-worker-westeurope2", Zone: "3",
			Image: "MicrosoftWindowsServer:WindowsServer:2022-datacenter-g2:latest",
		},
		"from-windows": {Name: "winworker"},
		"from-flags": {
			Name: "winworker", Zone: "1", InstanceType: "Standard_D4s_v5",
			Image: "/resourceGroups/example-images/providers/Microsoft.Compute/images/windows-server-2022",
			Set: []string{
				"location=westeurope", "resourceGroup=example-7k2vd-rg", "networkResourceGroup=example-7k2vd-rg",
				"vnet=example-7k2vd-vnet", "subnet=example-7k2vd-worker-subnet", "managedIdentity=example-7k2vd-identity",
			},
		},
	},
	bundle.PlatformGCP: {
		"from-worker": {
			Name: "example-7k2vd-windows-c", Model: "example-7k2vd-worker-b", Zone: "europe-west3-c",
			Image: "projects/windows-cloud/global/images/family/windows-2022-core",
		},
		"from-windows": {Name: "winworker", InstanceType: "n2-standard-8"},
		"from-flags": {
			Name: "winworker", Zone: "europe-west3-a", InstanceType: "n2-standard-4",
			Image: "projects/windows-cloud/global/images/family/windows-2022-core",
			Set: []string{
				"projectID=example-project", "networkInterfaces[0].network=example-7k2vd-network",
				"networkInterfaces[0].subnetwork=example-7k2vd-worker-subnet", "tags=[example-7k2vd-worker]",
				"serviceAccounts=[{email: example-7k2vd-w@example-project.example.com, scopes: ['https://www.googleapis.com/auth/cloud-platform']}]",
			},
		},
	},
	bundle.PlatformVSphere: {
		"from-worker":  {Name: "winworker", Model: "example-7k2vd-worker-0", Zone: "zone-one", Image: "windows-golden-image"},
		"from-windows": {Name: "winworker", Set: []string{"memoryMiB=32768"}},
		"from-flags": {
			Name: "winworker", Image: "windows-golden-image",
			Set: []string{
				"numCPUs=4", "numCoresPerSocket=1", "memoryMiB=16384", "network.devices[0].networkName=vm-network",
				"workspace.server=vcenter.example.com", "workspace.datacenter=example-dc", "workspace.datastore=/example-dc/datastore/example-store",
				"workspace.resourcePool=/example-dc/host/example-cluster/Resources",
			},
		},
	},
	bundle.PlatformNutanix: {
		"from-worker":  {Name: "winworker", Model: "example-7k2vd-worker-0", Image: "2f3a9c1e-5b7d-4e60-9a8b-1c2d3e4f5a6b"},
		"from-windows": {Name: "winworker"},
		"from-flags": {
			Name: "winworker", Image: "windows-server-2022",
			Set: []string{
				"vcpuSockets=4", "memorySize=16Gi", "cluster={type: uuid, uuid: 8471aea9-a61e-5e3c-8063-b6b09cd301cd}",
				"subnets=[{type: uuid, uuid: 41e55d54-d1c1-5cd1-bc98-c4cba087f1c1}]",
			},
		},
	},
}

func machinesCluster(t *testing.T, p bundle.Platform, paths ...string) machines.Cluster {
	t.Helper()
	paths = append(paths, filepath.Join("clusters", machines.Flag(p)))
	c, findings, err := gather.WorkerMachineSets(t.Context(), objects.NewPathsReader(paths, nil))
	if err != nil || findings.Refused() {
		t.Fatalf("%v: %+v", err, findings)
	}
	return c
}

// machinesOf returns every file of a platform's goldens.
func machinesOf(t *testing.T, p bundle.Platform) map[string][]byte {
	t.Helper()
	key, err := os.ReadFile(filepath.Join("machines", "key.pub"))
	if err != nil {
		t.Fatal(err)
	}
	if p == bundle.PlatformNone { // a host that exists, and no Machine
		script, err := machines.Script(p, string(key))
		if err != nil {
			t.Fatal(err)
		}
		return map[string][]byte{"userdata.ps1": []byte(script)}
	}
	script, err := machines.UserData(p, string(key))
	if err != nil {
		t.Fatal(err)
	}
	// The script is in one file: in the Secret, only what is around it.
	indented := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(script, "    $1")
	secret := strings.Replace(string(manifest(t, machines.Secret(script))), indented, "    the lines of userdata.ps1\n", 1)
	tree := map[string][]byte{"userdata.ps1": []byte(script), "secret.yaml": []byte(secret)}
	var with []string
	if p != bundle.PlatformAWS { // the one example cluster with a worker MachineSet of Linux
		with = append(with, filepath.Join("machines", machines.Flag(p), "worker.yaml"))
	}
	for name, o := range machineSets[p] {
		o.Platform = p
		switch name {
		case "from-worker":
			o.Cluster = machinesCluster(t, p, with...)
		case "from-windows":
			o.Cluster = machinesCluster(t, p)
		default:
			o.Cluster.InfrastructureName = "example-7k2vd"
		}
		m, findings := machines.MachineSet(o)
		text, err := json.MarshalIndent(findings, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		tree[name+".findings.json"] = append(text, '\n')
		if m.Object != nil {
			tree[name+".yaml"] = manifest(t, m)
		}
	}
	return tree
}

func manifest(t *testing.T, m machines.Manifest) []byte {
	t.Helper()
	text, err := m.YAML()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestMachines(t *testing.T) {
	for _, p := range bundle.Platforms() {
		t.Run(machines.Flag(p), func(t *testing.T) {
			want := machinesOf(t, p)
			for range 20 {
				if diff := cmp.Diff(want, machinesOf(t, p)); diff != "" {
					t.Fatalf("not the same bytes twice:\n%s", diff)
				}
			}
			compareTree(t, filepath.Join("machines", machines.Flag(p), "want"), want)
		})
	}
}

// TestMachineManifests checks the manifests against the types of a cluster.
func TestMachineManifests(t *testing.T) {
	all := clusterObjects(t, "machines")
	if want := len(machines.Platforms()) * 4; len(all) < want {
		t.Errorf("%d manifests, want at least %d", len(all), want)
	}
	checkObjects(t, all)
	checkProviders(t, all)
}

// TestUserDataOpensThePortsOfEveryBundle: the firewall rules of user data are those of bundles.
func TestUserDataOpensThePortsOfEveryBundle(t *testing.T) {
	for name, b := range bundles(t, readAll(t, filepath.Join("cases", "aws"))) {
		byName := cmpopts.SortSlices(func(a, b bundle.FirewallRule) bool { return a.Name < b.Name })
		noImpact := cmpopts.IgnoreFields(bundle.FirewallRule{}, "Impact")
		if diff := cmp.Diff(b.Bundle.Cluster.Firewall, layout.Firewall(), byName, noImpact); diff != "" {
			t.Errorf("%s (-bundle +user data):\n%s", name, diff)
		}
	}
}

// TestUserDataIsWhatCloudsRun: ASCII, small enough for every cloud, and marked as PowerShell everywhere but on GCP.
// The script for a host that exists has no tags either: a person runs it.
func TestUserDataIsWhatCloudsRun(t *testing.T) {
	for _, p := range bundle.Platforms() {
		script := string(machinesOf(t, p)["userdata.ps1"])
		if i := strings.IndexFunc(script, func(r rune) bool { return r > '~' || r < ' ' && r != '\n' }); i >= 0 {
			t.Errorf("%s: %q at %d is not ASCII", p, script[i:i+1], i)
		}
		if len(script) > 16<<10 {
			t.Errorf("%s: %d bytes; AWS takes 16 KiB", p, len(script))
		}
		if tagged := strings.HasPrefix(script, "<powershell>\n") && strings.HasSuffix(script, "</powershell>\n<persist>true</persist>\n"); tagged != (p != bundle.PlatformGCP && p != bundle.PlatformNone) || strings.Contains(script, "\n<") != tagged {
			t.Errorf("%s: in tags: %t", p, tagged)
		}
	}
}

// TestNothingOfAnotherUserIsTrusted: whoever has an account on a host that exists may make the folder of sshd before there is one, with a key or a configuration
// in it. The access that the script gives would make it one that sshd follows.
func TestNothingOfAnotherUserIsTrusted(t *testing.T) {
	script := string(machinesOf(t, bundle.PlatformNone)["userdata.ps1"])
	last := -1
	for _, step := range []string{
		"::CreateDirectory($folder, $acl)", "Assert-Owner -Path $folder", "::SetAccessControl($folder, $acl)",
		"'sshd_config', 'administrators_authorized_keys'", "Assert-Owner -Path $file", "Start-Service -Name 'sshd'", "AppendAllText($keys", "::SetAccessControl($keys, $acl)",
	} {
		at := strings.Index(script, step)
		if at <= last {
			t.Errorf("%s is at %d, after %d was expected", step, at, last)
		}
		last = at
	}
}
