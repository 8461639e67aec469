package machines

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// source returns a minimal MachineSet.
func source(name string, change func(set object)) Source {
	set := object{
		"metadata": object{"name": name, "namespace": Namespace},
		"spec": object{"template": object{
			"metadata": object{"labels": object{labelRole: roleWorker}},
			"spec": object{
				"metadata": object{},
				"providerSpec": object{"value": object{
					"kind": "AWSMachineProviderConfig", "apiVersion": "machine.openshift.io/v1beta1",
					"ami": object{"id": "ami-00000000"}, "instanceType": "m6i.xlarge",
					"blockDevices": []any{object{"ebs": object{"volumeSize": 120}}},
					"placement":    object{"region": "eu-central-1", "availabilityZone": "eu-central-1a"},
					"subnet":       object{"id": "subnet-1"}, "securityGroups": []any{object{"id": "sg-1"}},
					"iamInstanceProfile": object{"id": "worker"}, "newField": object{"deep": []any{1, "two"}},
				}},
			},
		}},
	}
	if change != nil {
		change(set)
	}
	text, err := json.Marshal(set)
	if err != nil {
		panic(err)
	}
	return Source{Ref: bundle.Ref{Kind: "MachineSet", Namespace: Namespace, Name: name}, JSON: text}
}

// with sets one value of a MachineSet.
func with(p string, value any) func(object) {
	return func(set object) {
		if _, err := mustParsePath(p).put(set, value); err != nil {
			panic(err)
		}
	}
}

const provider1 = "spec.template.spec.providerSpec.value."

func aws(change func(*Options), sets ...Source) Options {
	o := Options{
		Platform: bundle.PlatformAWS, Name: "winworker", Image: "ami-11111111",
		Cluster: Cluster{Platform: bundle.PlatformAWS, InfrastructureName: "example-7k2vd", Sets: append([]Source{source("worker-a", nil)}, sets...)},
	}
	if change != nil {
		change(&o)
	}
	return o
}

// short is a finding in one line.
func short(findings bundle.Findings) []string {
	var lines []string
	for _, f := range findings {
		if f.Reason != "ReplicasZero" {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Severity, f.Reason, strings.TrimPrefix(f.Field, provider1))))
		}
	}
	return lines
}

func TestFindings(t *testing.T) {
	long := strings.Repeat("a", 58)
	for name, c := range map[string]struct {
		options Options
		want    []string
	}{
		"no findings":                             {aws(nil), nil},
		"the longest name":                        {aws(func(o *Options) { o.Name = long[:57] }), nil},
		"no platform":                             {aws(func(o *Options) { o.Platform, o.Cluster.Platform = "", "" }), []string{"error ValueMissing"}},
		"a platform without a Machine API":        {aws(func(o *Options) { o.Platform, o.Cluster.Platform = "None", "None" }), []string{"error PlatformUnsupported"}},
		"a cluster on another platform":           {aws(func(o *Options) { o.Platform = bundle.PlatformGCP }), []string{"error PlatformMismatch"}},
		"a name too long":                         {aws(func(o *Options) { o.Name = long }), []string{"error NameTooLong metadata.name"}},
		"a name with a dot":                       {aws(func(o *Options) { o.Name = "win.worker" }), []string{"error NameInvalid metadata.name"}},
		"a name in capitals":                      {aws(func(o *Options) { o.Name = "Win" }), []string{"error NameInvalid metadata.name"}},
		"a name that is taken":                    {aws(func(o *Options) { o.Name = "worker-a" }), []string{"error NameTaken metadata.name"}},
		"no image for Windows":                    {aws(func(o *Options) { o.Image = "" }), []string{"error ValueMissing ami"}},
		"no image and no cluster":                 {aws(func(o *Options) { o.Image, o.Cluster.InfrastructureName = "", "" }), []string{"error ValueMissing metadata.labels", "error ValueMissing ami"}},
		"an image of another cloud":               {aws(func(o *Options) { o.Image = "windows-2022" }), []string{"error ImageInvalid"}},
		"an unknown model":                        {aws(func(o *Options) { o.Model = "nobody" }), []string{"error ModelMissing"}},
		"a zone of another region":                {aws(func(o *Options) { o.Zone = "us-east-1a" }), []string{"error ZoneInvalid placement.availabilityZone", "error SubnetOfAnotherZone subnet"}},
		"a zone without a subnet":                 {aws(func(o *Options) { o.Zone = "eu-central-1b" }), []string{"error SubnetOfAnotherZone subnet"}},
		"a zone with a subnet":                    {aws(func(o *Options) { o.Zone, o.Set = "eu-central-1b", []string{"subnet.id=subnet-2"} }), nil},
		"a zone with a subnet by name":            {aws(func(o *Options) { o.Zone = "eu-central-1b" }, source("worker-0", with(provider1+"subnet", object{"filters": []any{object{"name": "tag:Name", "values": []any{"private-eu-central-1a"}}}}))), []string{"warning SubnetRenamed subnet"}},
		"an ARM model":                            {aws(func(o *Options) { o.Model = "arm" }, source("arm", with("metadata.annotations", object{armAnnotation: "kubernetes.io/arch=arm64"}))), []string{"error InstanceTypeNotAMD64 instanceType"}},
		"an ARM model with another instance type": {aws(func(o *Options) { o.Model, o.InstanceType = "arm", "m6i.large" }, source("arm", with("metadata.annotations", object{armAnnotation: "kubernetes.io/arch=arm64"}))), nil},
		"labels and taints of a model": {aws(func(o *Options) { o.Model = "infra" }, source("infra", func(set object) {
			with("spec.template.spec.metadata.labels", object{"node-role.kubernetes.io/infra": "", "team": "a"})(set)
			with("spec.template.spec.taints", []any{object{"key": "infra"}})(set)
		})), []string{"info LabelsLeftOut spec.template.spec.metadata.labels", "info TaintsLeftOut spec.template.spec.taints"}},
		"a --set without a value":                  {aws(func(o *Options) { o.Set = []string{"subnet"} }), []string{"error SetInvalid"}},
		"a --set with an invalid path":             {aws(func(o *Options) { o.Set = []string{"a..b=1", "=", "[0]=1"} }), []string{"error SetInvalid", "error SetInvalid", "error SetInvalid"}},
		"a --set of an unknown field":              {aws(func(o *Options) { o.Set = []string{"subnets.id=1"} }), []string{"error SetInvalid subnets.id"}},
		"a --set of the wrong type":                {aws(func(o *Options) { o.Set = []string{"deviceIndex=first"} }), []string{"error SetInvalid deviceIndex"}},
		"a --set beyond the end":                   {aws(func(o *Options) { o.Set = []string{"securityGroups[2].id=sg-2"} }), []string{"error SetInvalid securityGroups[2].id"}},
		"a --set that empties a required value":    {aws(func(o *Options) { o.Set = []string{"subnet={}"} }), []string{"error ValueMissing subnet"}},
		"a model with a text instead of an object": {aws(nil, source("worker-0", with(provider1+"userDataSecret", "worker"))), []string{"error ModelInvalid userDataSecret.name"}},
		"9 characters on vSphere":                  {Options{Platform: bundle.PlatformVSphere, Name: "winworker", Cluster: Cluster{InfrastructureName: "x"}}, []string{"error ValueMissing memoryMiB", "error ValueMissing network.devices[0].networkName", "error ValueMissing numCPUs", "error ValueMissing template", "error ValueMissing workspace.datacenter", "error ValueMissing workspace.datastore", "error ValueMissing workspace.resourcePool", "error ValueMissing workspace.server"}},
		"the one failure domain":                   {Options{Platform: bundle.PlatformVSphere, Name: "winworker", Image: "win", Set: []string{"numCPUs=4", "memoryMiB=16384"}, Cluster: Cluster{InfrastructureName: "x", FailureDomains: []FailureDomain{{Name: "a", Server: "s", Datacenter: "d", Datastore: "e", ResourcePool: "r", Networks: []string{"n"}}}}}, nil},
		"an unknown failure domain":                {Options{Platform: bundle.PlatformNutanix, Name: "winworker", Image: "win", Zone: "b", Set: []string{"vcpuSockets=4", "memorySize=16Gi", "cluster.name=a", "subnets[0].name=b"}, Cluster: Cluster{InfrastructureName: "x", FailureDomains: []FailureDomain{{Name: "a"}}}}, []string{"error ZoneInvalid"}},
		"a failure domain of Nutanix":              {Options{Platform: bundle.PlatformNutanix, Name: "winworker", Image: "win", Zone: "a", Set: []string{"vcpuSockets=4", "memorySize=16Gi"}, Cluster: Cluster{InfrastructureName: "x", FailureDomains: []FailureDomain{{Name: "a", Element: Identifier{Name: "pe"}, Subnets: []Identifier{{UUID: "u"}}}}}}, nil},
		"no instance types on vSphere":             {Options{Platform: bundle.PlatformVSphere, Name: "win", InstanceType: "large", Image: "w", Cluster: Cluster{InfrastructureName: "x", FailureDomains: []FailureDomain{{Name: "a", Server: "s", Datacenter: "d", Datastore: "e", ResourcePool: "r", Networks: []string{"n"}}}}, Set: []string{"numCPUs=4", "memoryMiB=1"}}, []string{"error InstanceTypeUnknown"}},
		"an image of Azure in 3 parts":             {Options{Platform: bundle.PlatformAzure, Name: "win", InstanceType: "s", Image: "a:b:c", Cluster: Cluster{InfrastructureName: "x", ResourceGroup: "g", NetworkResourceGroup: "g"}, Set: []string{"location=l", "vnet=v", "subnet=s"}}, []string{"error ImageInvalid", "error ValueMissing image"}},
		"a name of digits on GCP":                  {Options{Platform: bundle.PlatformGCP, Name: "1win", InstanceType: "s", Image: "i", Zone: "r-a", Cluster: Cluster{InfrastructureName: "x", Project: "p"}, Set: []string{"networkInterfaces[0].network=n", "networkInterfaces[0].subnetwork=s", "serviceAccounts=[{email: e}]"}}, []string{"error NameInvalid metadata.name"}},
		"a zone of another region on GCP":          {Options{Platform: bundle.PlatformGCP, Name: "win", InstanceType: "s", Image: "i", Zone: "r2-a", Cluster: Cluster{InfrastructureName: "x", Project: "p", Region: "r"}, Set: []string{"networkInterfaces[0].network=n", "networkInterfaces[0].subnetwork=s", "serviceAccounts=[{email: e}]"}}, []string{"error ZoneInvalid zone"}},
		"10 characters on Azure":                   {Options{Platform: bundle.PlatformAzure, Name: "winworker1", InstanceType: "s", Image: "a:b:c:d", Cluster: Cluster{InfrastructureName: "x", ResourceGroup: "g", NetworkResourceGroup: "g"}, Set: []string{"location=l", "vnet=v", "subnet=s"}}, []string{"error NameTooLong metadata.name"}},
	} {
		m, findings := MachineSet(c.options)
		if diff := cmp.Diff(c.want, short(findings)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if (m.Object == nil) != findings.Refused() {
			t.Errorf("%s: refused %t, but the manifest is %v", name, findings.Refused(), m.Object)
		}
	}
}

func TestTheModelIsChosenByZoneThenWindowsThenName(t *testing.T) {
	zone := func(z string) func(object) { return with(provider1+"placement.availabilityZone", z) }
	windows := func(set object) { with("spec.template.metadata.labels", object{labelOS: osWindows})(set) }
	both := func(set object) { windows(set); zone("eu-central-1b")(set) }
	tainted := func(set object) { with("spec.template.spec.taints", []any{object{"key": "x"}})(set) }
	other := func(set object) { with(provider1+"kind", "GCPMachineProviderSpec")(set) }
	sets := []Source{
		source("z-win-b", both), source("y-b", zone("eu-central-1b")), source("x-win-a", windows), source("a-tainted", tainted), source("a-other", other),
		{Ref: bundle.Ref{Name: "broken"}, JSON: []byte("{")},
	}
	for _, c := range []struct{ zone, model, want string }{
		{"", "", "x-win-a"},
		{"eu-central-1a", "", "x-win-a"},
		{"eu-central-1b", "", "z-win-b"},
		{"eu-central-1b", "y-b", "y-b"},
		{"", "a-tainted", "a-tainted"},
		{"eu-central-1c", "", "x-win-a"},
	} {
		d := draft{options: aws(func(o *Options) { o.Zone, o.Model = c.zone, c.model }, sets...)}
		d.chooseModel()
		if d.model.ref.Name != c.want {
			t.Errorf("zone %q, model %q: %q, want %q", c.zone, c.model, d.model.ref.Name, c.want)
		}
	}
}

// TestUnknownFieldsOfTheModelAreCopied, and the model is not changed.
func TestUnknownFieldsOfTheModelAreCopied(t *testing.T) {
	o := aws(nil)
	before := string(o.Cluster.Sets[0].JSON)
	m, findings := MachineSet(o)
	if findings.Refused() {
		t.Fatal(findings)
	}
	got := mustParsePath("spec.template.spec.providerSpec.value.newField").get(m.Object)
	if diff := cmp.Diff(any(object{"deep": []any{json.Number("1"), "two"}}), got); diff != "" {
		t.Error(diff)
	}
	if after := string(o.Cluster.Sets[0].JSON); after != before {
		t.Errorf("the model was changed: %s", after)
	}
}

func TestSetReadsTheTypeOfTheField(t *testing.T) {
	for _, c := range []struct {
		platform  bundle.Platform
		path, raw string
		want      any
	}{
		{bundle.PlatformAzure, "zone", "1", "1"},
		{bundle.PlatformAzure, "osDisk.diskSizeGB", "256", json.Number("256")},
		{bundle.PlatformAWS, "blockDevices[0].ebs.encrypted", "true", true},
		{bundle.PlatformAWS, "blockDevices[3].ebs.volumeSize", "100", json.Number("100")},
		{bundle.PlatformAWS, "subnet", "{id: subnet-1}", object{"id": "subnet-1"}},
		{bundle.PlatformGCP, "tags", "[a, b]", []any{"a", "b"}},
		{bundle.PlatformGCP, "projectID", "yes", "yes"},
		{bundle.PlatformVSphere, "template", "a: b: c", "a: b: c"},
		{bundle.PlatformNutanix, "memorySize", "16Gi", "16Gi"},
	} {
		p, err := parsePath(c.path)
		if err != nil {
			t.Fatal(err)
		}
		d := draft{options: Options{Platform: c.platform}}
		got, err := d.parseValue(p, c.raw)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s=%s: %v\n%s", c.path, c.raw, err, diff)
		}
	}
}

// workers returns options with a model of another platform than AWS, of which one value is changed.
func workers(p bundle.Platform, changes ...string) Options {
	provider := map[bundle.Platform]object{
		bundle.PlatformAzure: {
			"kind": "AzureMachineProviderSpec", "vmSize": "Standard_D4s_v5", "location": "l", "resourceGroup": "g", "networkResourceGroup": "g", "vnet": "v", "subnet": "s",
			"osDisk": object{"diskSizeGB": 128},
		},
		bundle.PlatformGCP: {
			"kind": "GCPMachineProviderSpec", "machineType": "n2-standard-4", "zone": "r-a", "region": "r", "projectID": "p", "serviceAccounts": []any{object{"email": "e"}},
			"disks": []any{object{"boot": true, "sizeGb": 128}}, "networkInterfaces": []any{object{"network": "n", "subnetwork": "s"}},
		},
		bundle.PlatformVSphere: {
			"kind": "VSphereMachineProviderSpec", "numCPUs": 4, "memoryMiB": 16384, "diskGiB": 128, "network": object{"devices": []any{object{"networkName": "n"}}},
			"workspace": object{"server": "s", "datacenter": "d", "datastore": "e", "resourcePool": "r"},
		},
		bundle.PlatformNutanix: {
			"kind": "NutanixMachineProviderConfig", "vcpuSockets": 4, "memorySize": "16Gi", "systemDiskSize": "120Gi", "cluster": object{"name": "c"}, "subnets": []any{object{"name": "s"}},
		},
	}[p]
	o := Options{Platform: p, Name: "win", Image: "MicrosoftWindowsServer:WindowsServer:2022-datacenter-g2:latest", Set: changes}
	o.Cluster = Cluster{InfrastructureName: "x", Sets: []Source{source("worker", with("spec.template.spec.providerSpec.value", provider))}}
	return o
}

// TestWhatWindowsCannotUse: what works for the Linux machines of a model, or is asked for by flags, and is no Windows node.
func TestWhatWindowsCannotUse(t *testing.T) {
	set := func(changes ...string) Options {
		return aws(func(o *Options) { o.Set = changes })
	}
	size := func(o Options, size string) Options {
		o.InstanceType = size
		return o
	}
	gen1 := func(o Options, sku string) Options {
		o.Image = "MicrosoftWindowsServer:WindowsServer:" + sku + ":latest"
		return o
	}
	arm := []string{"error InstanceTypeNotAMD64 instanceType"}
	armAzure, armGCP := []string{"error InstanceTypeNotAMD64 vmSize"}, []string{"error InstanceTypeNotAMD64 machineType"}
	for name, c := range map[string]struct {
		options Options
		want    []string
	}{
		"m7g.xlarge":                   {size(aws(nil), "m7g.xlarge"), arm},
		"c7gn.large":                   {size(aws(nil), "c7gn.large"), arm},
		"im4gn.large":                  {size(aws(nil), "im4gn.large"), arm},
		"a1.large":                     {size(aws(nil), "a1.large"), arm},
		"a model of Graviton":          {aws(nil, source("worker-0", with(provider1+"instanceType", "m6g.2xlarge"))), arm},
		"g5.xlarge":                    {size(aws(nil), "g5.xlarge"), nil},
		"g4dn.xlarge":                  {size(aws(nil), "g4dn.xlarge"), nil},
		"m7i-flex.large":               {size(aws(nil), "m7i-flex.large"), nil},
		"u7i-12tb.224xlarge":           {size(aws(nil), "u7i-12tb.224xlarge"), nil},
		"Standard_D4ps_v5":             {size(workers(bundle.PlatformAzure), "Standard_D4ps_v5"), armAzure},
		"standard_d4pds_v6":            {size(workers(bundle.PlatformAzure), "standard_d4pds_v6"), armAzure},
		"Standard_D4s_v5":              {size(workers(bundle.PlatformAzure), "Standard_D4s_v5"), nil},
		"Standard_NP10s":               {size(workers(bundle.PlatformAzure), "Standard_NP10s"), nil},
		"t2a-standard-4":               {size(workers(bundle.PlatformGCP), "t2a-standard-4"), armGCP},
		"c4a-standard-4":               {size(workers(bundle.PlatformGCP), "c4a-standard-4"), armGCP},
		"t2d-standard-4":               {size(workers(bundle.PlatformGCP), "t2d-standard-4"), nil},
		"30 GB on AWS":                 {set("blockDevices[0].ebs.volumeSize=30"), []string{"warning DiskSmall blockDevices[0].ebs.volumeSize"}},
		"no disk on AWS":               {set("blockDevices=[]"), []string{"warning DiskSmall blockDevices"}},
		"a second disk on AWS":         {set("blockDevices[0].deviceName=/dev/xvda"), []string{"warning DiskSmall blockDevices[0].deviceName"}},
		"the root disk on AWS":         {set("blockDevices[0].deviceName=/dev/sda1"), nil},
		"the root disk is the second":  {set("blockDevices[0].deviceName=/dev/xvdb", "blockDevices[1].ebs.volumeSize=30"), []string{"warning DiskSmall blockDevices[1].ebs.volumeSize"}},
		"EFA":                          {set("networkInterfaceType=EFA"), []string{"warning NetworkUnusable networkInterfaceType"}},
		"ENA":                          {set("networkInterfaceType=ENA"), nil},
		"AMD SEV-SNP on AWS":           {set("cpuOptions.confidentialCompute=AMDEncryptedVirtualizationNestedPaging"), []string{"warning ConfidentialComputing cpuOptions.confidentialCompute"}},
		"AMD SEV-SNP is off on AWS":    {set("cpuOptions.confidentialCompute=Disabled"), nil},
		"64 GB on Azure":               {workers(bundle.PlatformAzure, "osDisk.diskSizeGB=64"), []string{"warning DiskSmall osDisk.diskSizeGB"}},
		"125 GB on Azure":              {workers(bundle.PlatformAzure, "osDisk.diskSizeGB=125"), []string{"warning DiskSmall osDisk.diskSizeGB"}},
		"125 GB for a small image":     {gen1(workers(bundle.PlatformAzure, "osDisk.diskSizeGB=125"), "2022-datacenter-smalldisk-g2"), nil},
		"64 GB for a small image":      {gen1(workers(bundle.PlatformAzure, "osDisk.diskSizeGB=64"), "2022-datacenter-smalldisk-g2"), []string{"warning DiskSmall osDisk.diskSizeGB"}},
		"ConfidentialVM":               {workers(bundle.PlatformAzure, "securityProfile.settings.securityType=ConfidentialVM"), []string{"warning ConfidentialComputing securityProfile.settings.securityType"}},
		"v6 with generation 1":         {size(gen1(workers(bundle.PlatformAzure), "2022-datacenter-smalldisk"), "Standard_D4s_v6"), []string{"warning ImageGeneration image.sku"}},
		"v6 with generation 2":         {size(workers(bundle.PlatformAzure), "Standard_D4s_v6"), nil},
		"v6 with a gensecond image":    {size(gen1(workers(bundle.PlatformAzure), "2019-datacenter-gensecond"), "Standard_D4s_v6"), nil},
		"v6 with an Azure edition":     {size(gen1(workers(bundle.PlatformAzure), "2022-datacenter-azure-edition-core"), "Standard_D4s_v6"), nil},
		"v5 with generation 1":         {gen1(workers(bundle.PlatformAzure), "2022-datacenter"), nil},
		"64 GB on GCP":                 {workers(bundle.PlatformGCP, "disks[0].sizeGb=64"), []string{"warning DiskSmall disks[0].sizeGb"}},
		"confidential on GCP":          {workers(bundle.PlatformGCP, "confidentialCompute=Enabled"), []string{"warning ConfidentialComputing confidentialCompute"}},
		"two network cards on GCP":     {workers(bundle.PlatformGCP, "networkInterfaces[1].network=m"), []string{"warning NetworkUnusable networkInterfaces"}},
		"40 GiB on vSphere":            {workers(bundle.PlatformVSphere, "diskGiB=40"), []string{"warning DiskSmall diskGiB"}},
		"two network cards on vSphere": {workers(bundle.PlatformVSphere, "network.devices[1].networkName=m"), []string{"warning NetworkUnusable network.devices"}},
		"static addresses of a pool":   {workers(bundle.PlatformVSphere, "network.devices[0].addressesFromPools=[{group: g, resource: r, name: pool}]"), []string{"warning NetworkUnusable network.devices[0].addressesFromPools"}},
		"a static address":             {workers(bundle.PlatformVSphere, "network.devices[0].ipAddrs=[192.0.2.1/24]"), []string{"warning NetworkUnusable network.devices[0].ipAddrs"}},
		"40Gi on Nutanix":              {workers(bundle.PlatformNutanix, "systemDiskSize=40Gi"), []string{"warning DiskSmall systemDiskSize"}},
		"two subnets on Nutanix":       {workers(bundle.PlatformNutanix, "subnets[1].name=t"), []string{"warning NetworkUnusable subnets"}},
		"nothing on vSphere":           {workers(bundle.PlatformVSphere), nil},
		"nothing on Nutanix":           {workers(bundle.PlatformNutanix), nil},
		"nothing on GCP":               {workers(bundle.PlatformGCP), nil},
	} {
		_, findings := MachineSet(c.options)
		if diff := cmp.Diff(c.want, short(slices.DeleteFunc(findings, func(f bundle.Finding) bool { return f.Reason == reason.SecurityKept }))); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%+v", name, diff, findings)
		}
	}
}

// TestTheFixOfWhatWindowsCannotUseWorks: with the --set that a finding names, nothing is left of it.
func TestTheFixOfWhatWindowsCannotUseWorks(t *testing.T) {
	for _, o := range []Options{
		aws(func(o *Options) {
			o.Set = []string{"blockDevices=[]", "networkInterfaceType=EFA", "cpuOptions.confidentialCompute=AMDEncryptedVirtualizationNestedPaging"}
		}),
		aws(func(o *Options) { o.Set = []string{"blockDevices[0].deviceName=/dev/xvda"} }),
		workers(bundle.PlatformAzure, "osDisk.diskSizeGB=64", "securityProfile.settings.securityType=ConfidentialVM"),
		workers(bundle.PlatformGCP, "disks[0].sizeGb=64", "confidentialCompute=Enabled", "networkInterfaces[1].network=m"),
		workers(bundle.PlatformVSphere, "diskGiB=40", "network.devices=[{networkName: net, ipAddrs: [192.0.2.1/24]}, {networkName: m}]"),
		workers(bundle.PlatformNutanix, "systemDiskSize=40Gi", "subnets[1].name=t"),
	} {
		_, before := MachineSet(o)
		for _, f := range before {
			if _, set, ok := strings.Cut(f.Fix, "--set "); ok && f.Severity == bundle.SeverityWarning {
				set, _, _ = strings.Cut(set, ", or an image")
				o.Set = append(o.Set, strings.ReplaceAll(strings.ReplaceAll(set, "'", ""), "...", "net"))
			}
		}
		if _, after := MachineSet(o); len(short(before)) == 0 || slices.ContainsFunc(after, func(f bundle.Finding) bool { return f.Severity != bundle.SeverityInfo }) {
			t.Errorf("%s: %q: before %q, after %+v", o.Platform, o.Set, short(before), after)
		}
	}
}

// FuzzSet: every --set results in a manifest or in findings.
func FuzzSet(f *testing.F) {
	for _, s := range []string{"a=b", "subnet.id=x", "blockDevices[0].ebs={}", "securityGroups[1]=null", "placement=[", "deviceIndex=1e400", "ami=&a [*a]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, findings := MachineSet(aws(func(o *Options) { o.Set = []string{s} }))
		if (m.Object == nil) != findings.Refused() {
			t.Errorf("%q: %+v", s, findings)
		}
		if m.Object == nil {
			return
		}
		if _, err := m.YAML(); err != nil {
			t.Errorf("%q: %v", s, err)
		}
		first, _, _ := strings.Cut(s, "=")
		if p, err := parsePath(first); err != nil || !strings.HasPrefix(p.String(), first[:1]) {
			t.Errorf("%q was taken", s)
		}
	})
}

func TestALengthIsWrittenAsPeopleCount(t *testing.T) {
	for count, want := range map[int]string{
		0: "[7] is beyond the end of the list, which has 0 elements",
		1: "[7] is beyond the end of the list, which has 1 element",
	} {
		_, err := path{7}.put(make([]any, count), "x")
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
