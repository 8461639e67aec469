package machines

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// forWindows changes what a Windows machine needs and the model does not have.
func (d *draft) forWindows() {
	switch d.options.Platform {
	case bundle.PlatformAWS:
		d.editAWS()
	case bundle.PlatformAzure:
		d.editAzure()
	case bundle.PlatformGCP:
		d.editGCP()
	case bundle.PlatformVSphere:
		d.editVSphere()
	case bundle.PlatformNutanix:
		d.editNutanix()
	case bundle.PlatformNone: // refused by checkPlatform
	}
	d.instanceType()
}

// setDefault sets a value of the cluster if the model has none.
func (d *draft) setDefault(p, value string) {
	if mustParsePath(p).text(d.provider) == "" && value != "" {
		d.putValue(mustParsePath(p), value)
	}
}

// setImage sets the image. A model for Linux keeps everything but its image.
func (d *draft) setImage(p string, value any) {
	if d.options.Image != "" {
		d.putValue(mustParsePath(p), value)
		return
	}
	if d.model.exists() && !d.model.isWindows() {
		d.putValue(mustParsePath(p), nil)
	}
}

func (d *draft) imageInvalid(want string) {
	d.refuse(
		reason.ImageInvalid, "", fmt.Sprintf("--image %q is not %s", d.options.Image, want),
		"give "+providerOf(d.options.Platform).needs[0].flag,
	)
}

func (d *draft) instanceType() {
	p := providerOf(d.options.Platform)
	switch {
	case d.options.InstanceType == "":
	case p.instanceType == "":
		d.refuse(
			reason.InstanceTypeUnknown, "", Flag(d.options.Platform)+" has no instance types",
			"leave --instance-type out, and give CPUs and memory: "+p.needs[1].flag+" "+p.needs[2].flag,
		)
	default:
		d.putValue(mustParsePath(p.instanceType), d.options.InstanceType)
	}
}

var ami = regexp.MustCompile(`^ami-[0-9a-f]{8,17}$`)

func (d *draft) editAWS() {
	d.setImage("ami", object{"id": d.options.Image})
	if d.options.Image != "" && !ami.MatchString(d.options.Image) {
		d.imageInvalid("the ID of an AMI")
	}
	d.setDefault("placement.region", d.options.Cluster.Region)
	old, zone := mustParsePath("placement.availabilityZone").text(d.provider), d.options.Zone
	if zone == "" {
		return
	}
	d.putValue(mustParsePath("placement.availabilityZone"), zone)
	if region := mustParsePath("placement.region").text(d.provider); !strings.HasPrefix(zone, region) {
		d.refuse(
			reason.ZoneInvalid, providerField+".placement.availabilityZone",
			fmt.Sprintf("%q is not a zone of region %s", zone, region), "give a zone of the region with --zone",
		)
	}
	if old != "" && old != zone && !d.isSet(mustParsePath("subnet")) {
		d.otherSubnet(old, zone)
	}
}

// otherSubnet changes the subnet to that of another zone: a subnet of AWS is in one zone, and the installer names it
// after the zone.
func (d *draft) otherSubnet(old, zone string) {
	before := mustParsePath("subnet").get(d.provider)
	after, renamed := replaceText(before, old, zone)
	if !renamed {
		d.refuse(
			reason.SubnetOfAnotherZone, providerField+".subnet",
			fmt.Sprintf("the subnet of %s is in %s, not in %s", d.model.ref, old, zone),
			`give --set subnet='{id: subnet-...}'`,
		)
		return
	}
	d.putValue(mustParsePath("subnet"), after)
	d.addFinding(
		bundle.SeverityWarning, reason.SubnetRenamed, providerField+".subnet",
		fmt.Sprintf("%s is in %s; the name of its subnet is used, with %s instead of %[2]s", d.model.ref, old, zone),
		"check that a subnet of this name exists",
	)
}

// replaceText replaces a text in every string of a value, and reports whether there was any.
func replaceText(v any, old, with string) (any, bool) {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, old, with), strings.Contains(v, old)
	case object:
		out, found := object{}, false
		for key, value := range v {
			replaced, ok := replaceText(value, old, with)
			out[key], found = replaced, found || ok
		}
		return out, found
	case []any:
		out, found := []any{}, false
		for _, value := range v {
			replaced, ok := replaceText(value, old, with)
			out, found = append(out, replaced), found || ok
		}
		return out, found
	}
	return v, false
}

func (d *draft) editAzure() {
	image := object{"publisher": "", "offer": "", "sku": "", "version": "", "resourceID": ""}
	switch parts := strings.Split(d.options.Image, ":"); {
	case d.options.Image == "":
	case strings.HasPrefix(d.options.Image, "/") && len(parts) == 1:
		image["resourceID"] = d.options.Image
	case len(parts) == 4 && !slices.Contains(parts, ""):
		image["publisher"], image["offer"], image["sku"], image["version"] = parts[0], parts[1], parts[2], parts[3]
	default:
		d.imageInvalid("PUBLISHER:OFFER:SKU:VERSION or a resource ID")
	}
	d.setImage("image", image)
	d.putValue(mustParsePath("osDisk.osType"), osWindows)
	d.setDefault("resourceGroup", d.options.Cluster.ResourceGroup)
	d.setDefault("networkResourceGroup", d.options.Cluster.NetworkResourceGroup)
	if d.options.Zone != "" {
		d.putValue(mustParsePath("zone"), d.options.Zone)
	}
	if security := mustParsePath("securityProfile.settings.securityType").text(d.provider); security != "" {
		d.addFinding(
			bundle.SeverityInfo, reason.SecurityKept, providerField+".securityProfile",
			fmt.Sprintf("the model uses %s, which needs an image of generation 2", security),
			"choose such an image, for example one whose SKU ends in -g2",
		)
	}
}

// bootImage returns the path of the image of GCP's boot disk.
func (d *draft) bootImage() path {
	p := mustParsePath(gcpBootImage)
	disks, _ := mustParsePath("disks").get(d.provider).([]any)
	boots := func(disk any) bool {
		boot, _ := mustParsePath("boot").get(disk).(bool)
		return boot
	}
	if i := slices.IndexFunc(disks, boots); i > 0 {
		p[1] = i
	}
	return p
}

func (d *draft) editGCP() {
	d.setImage(d.bootImage().String(), d.options.Image)
	d.setDefault("projectID", d.options.Cluster.Project)
	d.setDefault("region", d.options.Cluster.Region)
	if zone := d.options.Zone; zone != "" {
		d.putValue(mustParsePath("zone"), zone)
		d.setDefault("region", zone[:max(0, strings.LastIndex(zone, "-"))])
		if region := mustParsePath("region").text(d.provider); !strings.HasPrefix(zone, region+"-") {
			d.refuse(
				reason.ZoneInvalid, providerField+".zone",
				fmt.Sprintf("%q is not a zone of region %s", zone, region), "give a zone of the region with --zone",
			)
		}
	}
}

func (d *draft) editVSphere() {
	d.setImage("template", d.options.Image)
	if d.model.exists() && !d.model.isWindows() {
		d.putValue(mustParsePath("snapshot"), "") // the model's is of its own template
	}
	f, ok := d.failureDomain()
	if !ok {
		return
	}
	for p, value := range map[string]string{
		"workspace.server": f.Server, "workspace.datacenter": f.Datacenter, "workspace.datastore": f.Datastore,
		"workspace.folder": f.Folder, "workspace.resourcePool": f.ResourcePool,
	} {
		if value != "" {
			d.putValue(mustParsePath(p), value)
		}
	}
	var devices []any
	for _, name := range f.Networks {
		devices = append(devices, object{"networkName": name})
	}
	if len(devices) > 0 {
		d.putValue(mustParsePath("network.devices"), devices)
	}
}

var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func (d *draft) editNutanix() {
	image := Identifier{Name: d.options.Image}
	if uuid.MatchString(d.options.Image) {
		image = Identifier{UUID: d.options.Image}
	}
	d.setImage("image", image.object())
	f, ok := d.failureDomain()
	if !ok {
		return
	}
	d.putValue(mustParsePath("failureDomain"), object{"name": f.Name})
	d.putValue(mustParsePath("cluster"), f.Element.object())
	var subnets []any
	for _, s := range f.Subnets {
		subnets = append(subnets, s.object())
	}
	d.putValue(mustParsePath("subnets"), subnets)
}

// failureDomain returns the requested zone. Without a model, the only failure domain is used.
func (d *draft) failureDomain() (FailureDomain, bool) {
	domains := d.options.Cluster.FailureDomains
	if d.options.Zone == "" {
		if len(domains) == 1 && !d.model.exists() {
			return domains[0], true
		}
		return FailureDomain{}, false
	}
	var names []string
	for _, f := range domains {
		if d.options.Zone == f.Name || d.options.Zone == f.Zone {
			return f, true
		}
		names = append(names, f.Name)
	}
	d.refuse(
		reason.ZoneInvalid, "", fmt.Sprintf("the cluster has no failure domain %q", d.options.Zone),
		"choose one of: "+joinNames(names)+"; or leave --zone out",
	)
	return FailureDomain{}, false
}
