package machines

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// minDiskGB is the size of drive C: that docs/prerequisites.md asks for: images of Windows are large.
const minDiskGB = 120

// awsRoot is the device of the root disk of Amazon's Windows AMIs
// (docs.aws.amazon.com/AWSEC2/latest/UserGuide/device_naming.html). A mapping without a device is of the AMI's root
// disk.
const awsRoot = "/dev/sda1"

// checkUsable reports the values of the finished providerSpec with which the cloud makes a machine, or tries to, that
// is no Windows node.
func (d *draft) checkUsable() {
	d.checkArchitecture()
	switch d.options.Platform {
	case bundle.PlatformAWS:
		d.checkAWSDisk()
		d.checkConfidential("cpuOptions.confidentialCompute", "Disabled")
		if mustParsePath("networkInterfaceType").text(d.provider) == "EFA" {
			d.addFinding(
				bundle.SeverityWarning, reason.NetworkUnusable, providerField+".networkInterfaceType",
				"is EFA, which Windows uses as ENA", "give --set networkInterfaceType=ENA",
			)
		}
	case bundle.PlatformAzure:
		d.checkAzureDisk()
		d.checkConfidential("securityProfile.settings.securityType", "")
		d.checkGeneration()
	case bundle.PlatformGCP:
		disk := d.bootImage()[:2]
		d.checkDisk(disk.String() + ".sizeGb")
		d.checkConfidential("confidentialCompute", "Disabled")
		d.checkNetworkCards("networkInterfaces", "networkInterfaces='[{network: ..., subnetwork: ...}]'")
	case bundle.PlatformVSphere:
		d.checkDisk("diskGiB")
		d.checkNetworkCards("network.devices", "network.devices='[{networkName: ...}]'")
		d.checkStaticAddresses()
	case bundle.PlatformNutanix:
		d.checkNutanixDisk()
		d.checkNetworkCards("subnets", "subnets='[{type: uuid, uuid: ...}]'")
	case bundle.PlatformNone: // refused by checkPlatform
	}
}

// armTypes are the names of instance types with ARM processors. AWS has a g behind the generation (and a1), Azure a p
// behind the number of CPUs, GCP an a at the end of the series (and T2A):
// docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html,
// learn.microsoft.com/azure/virtual-machines/vm-naming-conventions,
// docs.cloud.google.com/compute/docs/instances/arm-on-compute.
var armTypes = map[bundle.Platform]*regexp.Regexp{
	bundle.PlatformAWS:   regexp.MustCompile(`^(a1|[a-z]+\d+[a-z-]*g[a-z0-9]*)\.`),
	bundle.PlatformAzure: regexp.MustCompile(`(?i)^standard_[a-z]+\d+(-\d+)?[a-z]*p[a-z]*_v\d`),
	bundle.PlatformGCP:   regexp.MustCompile(`^(t2a|c4a|n4a|a4x)-`),
}

// armAnnotation is where the cluster autoscaler reads the architecture of machines that do not exist yet.
const armAnnotation = "capacity.cluster-autoscaler.kubernetes.io/labels"

// checkArchitecture refuses ARM, which the name of the type has, or the annotation that the cluster autoscaler reads.
func (d *draft) checkArchitecture() {
	p := providerOf(d.options.Platform).instanceType
	if p == "" {
		return
	}
	name := mustParsePath(p).text(d.provider)
	annotations, _ := mustParsePath("metadata.annotations").get(d.model.set).(object)
	annotated := strings.Contains(fmt.Sprint(annotations[armAnnotation]), "kubernetes.io/arch=arm64")
	switch byName := armTypes[d.options.Platform].MatchString(name); {
	case byName:
		d.refuse(
			reason.InstanceTypeNotAMD64, providerField+"."+p,
			fmt.Sprintf("%q has ARM processors; Windows nodes are x86-64", name),
			"give another one with --instance-type",
		)
	case annotated && name == mustParsePath(p).text(d.model.provider):
		d.refuse(
			reason.InstanceTypeNotAMD64, providerField+"."+p,
			fmt.Sprintf("the machines of %s are ARM; Windows nodes are x86-64", d.model.ref),
			"give --instance-type, or another --model",
		)
	}
}

func (d *draft) diskSmall(field, message, fix string) {
	d.addFinding(bundle.SeverityWarning, reason.DiskSmall, providerField+"."+field, message, fix)
}

// checkDisk checks the size of the root disk, in GB or GiB. A field that is not there is left to the cloud.
func (d *draft) checkDisk(field string) {
	size, _ := mustParsePath(field).get(d.provider).(json.Number)
	if n, err := size.Int64(); err == nil && n < minDiskGB {
		d.diskSmall(
			field, fmt.Sprintf("is %d; a Windows node needs %d GB", n, minDiskGB),
			fmt.Sprintf("give --set %s=%d", field, minDiskGB),
		)
	}
}

// azureDisk is the size, in GB, of the disk of Microsoft's images that are not called smalldisk.
const azureDisk = 127

// checkAzureDisk checks the size of the root disk. Azure refuses one that is smaller than its image.
func (d *draft) checkAzureDisk() {
	const field = "osDisk.diskSizeGB"
	size, _ := mustParsePath(field).get(d.provider).(json.Number)
	n, err := size.Int64()
	if strings.Contains(mustParsePath("image.sku").text(d.provider), "smalldisk") || err != nil || n >= azureDisk {
		d.checkDisk(field)
		return
	}
	d.diskSmall(
		field, fmt.Sprintf("is %d, but Microsoft's Windows images need %d GB (image SKUs with smalldisk need less)", n, azureDisk),
		"give --set "+field+"=128",
	)
}

func (d *draft) checkNutanixDisk() {
	const field = "systemDiskSize"
	text := mustParsePath(field).text(d.provider)
	if size, err := resource.ParseQuantity(text); err == nil && size.Value() < minDiskGB*1e9 {
		d.diskSmall(
			field, fmt.Sprintf("is %s; a Windows node needs %d GB", text, minDiskGB),
			fmt.Sprintf("give --set %s=%dGi", field, minDiskGB),
		)
	}
}

// checkAWSDisk checks the root disk, and that there is one: with a device of another name the AMI's own size stays, 30
// GB of Amazon's.
func (d *draft) checkAWSDisk() {
	disks, _ := mustParsePath("blockDevices").get(d.provider).([]any)
	for i, disk := range disks {
		if device := mustParsePath("deviceName").text(disk); device == "" || device == awsRoot {
			d.checkDisk(fmt.Sprintf("blockDevices[%d].ebs.volumeSize", i))
			return
		}
	}
	if len(disks) == 0 {
		d.diskSmall(
			"blockDevices", "has no root disk, so its size is that of the AMI (30 GB for Amazon's Windows AMIs)",
			fmt.Sprintf("give --set blockDevices='[{ebs: {volumeSize: %d}}]'", minDiskGB),
		)
		return
	}
	d.diskSmall("blockDevices[0].deviceName", fmt.Sprintf(
		"is %q, a second disk. The root disk %s is not listed, so its size is that of the AMI (30 GB for Amazon's Windows AMIs)",
		mustParsePath("deviceName").text(disks[0]), awsRoot,
	),
		"give --set blockDevices[0].deviceName="+awsRoot)
}

// checkConfidential warns of confidential computing, which few images of Windows are made for. off is the value without
// it.
func (d *draft) checkConfidential(field, off string) {
	value := mustParsePath(field).text(d.provider)
	if value == "" || value == "TrustedLaunch" || value == off {
		return
	}
	fix := "give --set " + field + "=" + off
	if off == "" {
		fix = "give --set securityProfile='{}'"
	}
	d.addFinding(
		bundle.SeverityWarning, reason.ConfidentialComputing, providerField+"."+field,
		fmt.Sprintf("is %s: the machine does not start unless its image and instance type are made for it", value),
		fix+", or an image that the cloud names for it with --image",
	)
}

var (
	// nvmeSizes are Azure's sizes whose disks are NVMe alone
	// (learn.microsoft.com/azure/virtual-machines/nvme-overview).
	nvmeSizes = regexp.MustCompile(`(?i)_v([6-9]|\d\d)$`)
	// secondGeneration are Microsoft's SKUs of images of generation 2.
	secondGeneration = regexp.MustCompile(`(?i)(-g2\b|-gensecond|-gs$|azure-edition)`)
)

// checkGeneration warns of an image of the first generation, which sizes with NVMe disks alone do not boot.
func (d *draft) checkGeneration() {
	size, sku := mustParsePath("vmSize").text(d.provider), mustParsePath("image.sku").text(d.provider)
	if !nvmeSizes.MatchString(size) ||
		mustParsePath("image.publisher").text(d.provider) != "MicrosoftWindowsServer" || secondGeneration.MatchString(sku) {
		return
	}
	d.addFinding(
		bundle.SeverityWarning, reason.ImageGeneration, providerField+".image.sku",
		fmt.Sprintf("is %q, of generation 1, which %s does not boot", sku, size),
		"give an image whose SKU ends in -g2 with --image, or a size such as Standard_D4s_v5 with --instance-type",
	)
}

func (d *draft) checkNetworkCards(field, set string) {
	if cards, _ := mustParsePath(field).get(d.provider).([]any); len(cards) > 1 {
		d.addFinding(
			bundle.SeverityWarning, reason.NetworkUnusable, providerField+"."+field,
			fmt.Sprintf("has %d networks; a Windows node has one network card", len(cards)),
			"give the network of the nodes: --set "+set,
		)
	}
}

// checkStaticAddresses warns of addresses that vSphere's machine controller hands to the initial RAM disk of Linux.
func (d *draft) checkStaticAddresses() {
	cards, _ := mustParsePath("network.devices").get(d.provider).([]any)
	for i, card := range cards {
		for _, name := range []string{"addressesFromPools", "ipAddrs"} {
			if hasValue(mustParsePath(name).get(card)) {
				d.addFinding(bundle.SeverityWarning, reason.NetworkUnusable, fmt.Sprintf("%s.network.devices[%d].%s", providerField, i, name), "gives static addresses, which Windows does not read",
					"use a network with DHCP: --set network.devices='[{networkName: ...}]'")
			}
		}
	}
}
