package machines

import (
	"fmt"

	machinev1 "github.com/openshift/api/machine/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// provider describes a platform's providerSpec.
type provider struct {
	kind, apiVersion string
	// value returns a new value of its type.
	value func() any
	// zone and instanceType are paths. They are empty if the platform has none.
	zone, instanceType string
	// start is the providerSpec without a model: the values that the installer writes in every cluster.
	start object
	needs []need
}

// need is a value that the cloud needs to create a machine.
type need struct {
	path, what string
	// flag is the flag that sets it.
	flag string
}

const credentials = "credentialsSecret"

func providerOf(p bundle.Platform) provider {
	switch p {
	case bundle.PlatformAWS:
		return awsProvider()
	case bundle.PlatformAzure:
		return azureProvider()
	case bundle.PlatformGCP:
		return gcpProvider()
	case bundle.PlatformVSphere:
		return vsphereProvider()
	case bundle.PlatformNutanix:
		return nutanixProvider()
	case bundle.PlatformNone:
	}
	return provider{}
}

func awsProvider() provider {
	return provider{
		kind: "AWSMachineProviderConfig", apiVersion: "machine.openshift.io/v1beta1",
		value: func() any { return new(machinev1beta1.AWSMachineProviderConfig) },
		zone:  "placement.availabilityZone", instanceType: "instanceType",
		start: object{
			credentials:    object{"name": "aws-cloud-credentials"},
			"deviceIndex":  0,
			"blockDevices": []any{object{"ebs": object{"encrypted": true, "volumeSize": 120, "volumeType": "gp3"}}},
		},
		needs: []need{
			{"ami", "the Windows AMI", "--image ami-..."},
			{"instanceType", "the instance type", "--instance-type m6i.xlarge"},
			{"placement.availabilityZone", "the availability zone", "--zone eu-central-1a"},
			{"placement.region", "the region", "--set placement.region=eu-central-1"},
			{"subnet", "the subnet of the zone", "--set subnet.id=subnet-..."},
			{"securityGroups", "the security group of workers", "--set securityGroups[0].id=sg-..."},
			{"iamInstanceProfile", "the instance profile of workers", "--set iamInstanceProfile.id=..."},
		},
	}
}

func azureProvider() provider {
	return provider{
		kind: "AzureMachineProviderSpec", apiVersion: "machine.openshift.io/v1beta1",
		value: func() any { return new(machinev1beta1.AzureMachineProviderSpec) },
		zone:  "zone", instanceType: "vmSize",
		start: object{
			credentials: object{"name": "azure-cloud-credentials", "namespace": Namespace},
			"osDisk":    object{"diskSizeGB": 128, "managedDisk": object{"storageAccountType": "Premium_LRS"}},
			"publicIP":  false,
		},
		needs: []need{
			{"image", "the Windows image", "--image MicrosoftWindowsServer:WindowsServer:2022-datacenter:latest"},
			{"vmSize", "the VM size", "--instance-type Standard_D4s_v5"},
			{"location", "the location", "--set location=westeurope"},
			{"resourceGroup", "the resource group", "--set resourceGroup=..."},
			{"networkResourceGroup", "the resource group of the network", "--set networkResourceGroup=..."},
			{"vnet", "the virtual network", "--set vnet=..."},
			{"subnet", "the subnet of workers", "--set subnet=..."},
		},
	}
}

func gcpProvider() provider {
	return provider{
		kind: "GCPMachineProviderSpec", apiVersion: "machine.openshift.io/v1beta1",
		value: func() any { return new(machinev1beta1.GCPMachineProviderSpec) },
		zone:  "zone", instanceType: "machineType",
		start: object{
			credentials:          object{"name": "gcp-cloud-credentials"},
			"canIPForward":       false,
			"deletionProtection": false,
			"disks":              []any{object{"autoDelete": true, "boot": true, "sizeGb": 128, "type": "pd-ssd"}},
		},
		needs: []need{
			{gcpBootImage, "the Windows image", "--image projects/windows-cloud/global/images/family/windows-2022-core"},
			{"machineType", "the machine type", "--instance-type n2-standard-4"},
			{"zone", "the zone", "--zone europe-west3-a"},
			{"region", "the region", "--set region=europe-west3"},
			{"projectID", "the project", "--set projectID=..."},
			{"networkInterfaces[0].network", "the network", "--set networkInterfaces[0].network=..."},
			{"networkInterfaces[0].subnetwork", "the subnetwork of workers", "--set networkInterfaces[0].subnetwork=..."},
			{
				"serviceAccounts", "the service account of workers",
				"--set serviceAccounts='[{email: ..., scopes: [https://www.googleapis.com/auth/cloud-platform]}]'",
			},
		},
	}
}

// gcpBootImage is the path of the boot disk's image if the boot disk is the first disk.
const gcpBootImage = "disks[0].image"

func vsphereProvider() provider {
	return provider{
		kind: "VSphereMachineProviderSpec", apiVersion: "machine.openshift.io/v1beta1",
		value: func() any { return new(machinev1beta1.VSphereMachineProviderSpec) },
		start: object{
			credentials: object{"name": "vsphere-cloud-credentials"},
			"diskGiB":   128,
			"snapshot":  "",
		},
		needs: []need{
			{"template", "the template with Windows", "--image windows-golden-image"},
			{"numCPUs", "the number of CPUs", "--set numCPUs=4"},
			{"memoryMiB", "the memory", "--set memoryMiB=16384"},
			{"network.devices[0].networkName", "the network", "--set network.devices[0].networkName=..."},
			{"workspace.server", "the vCenter", "--zone (a failure domain of the cluster) or --set workspace.server=..."},
			{"workspace.datacenter", "the datacenter", "--zone or --set workspace.datacenter=..."},
			{"workspace.datastore", "the datastore", "--zone or --set workspace.datastore=..."},
			{"workspace.resourcePool", "the resource pool", "--zone or --set workspace.resourcePool=..."},
		},
	}
}

func nutanixProvider() provider {
	return provider{
		kind: "NutanixMachineProviderConfig", apiVersion: "machine.openshift.io/v1",
		value: func() any { return new(machinev1.NutanixMachineProviderConfig) },
		zone:  "failureDomain.name",
		start: object{
			credentials:      object{"name": "nutanix-credentials"},
			"systemDiskSize": "120Gi",
			"vcpusPerSocket": 1,
		},
		needs: []need{
			{"image", "the Windows image", "--image NAME|UUID"},
			{"vcpuSockets", "the number of CPUs", "--set vcpuSockets=4"},
			{"memorySize", "the memory", "--set memorySize=16Gi"},
			{
				"cluster", "the Prism Element cluster",
				"--zone (a failure domain of the cluster) or --set cluster='{type: uuid, uuid: ...}'",
			},
			{"subnets", "the subnet", "--zone or --set subnets='[{type: uuid, uuid: ...}]'"},
		},
	}
}

// checkNeeds reports every value that is missing.
func (d *draft) checkNeeds() {
	for _, n := range providerOf(d.options.Platform).needs {
		p := mustParsePath(n.path)
		if n.path == gcpBootImage {
			p = d.bootImage()
		}
		if !hasValue(p.get(d.provider)) {
			d.refuse(reason.ValueMissing, providerField+"."+p.String(), fmt.Sprintf("%s is not known", n.what), "give "+n.flag)
		}
	}
}
