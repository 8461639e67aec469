package machines

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/render"
)

// Labels of the Machine API.
const (
	labelCluster    = "machine.openshift.io/cluster-api-cluster"
	labelMachineSet = "machine.openshift.io/cluster-api-machineset"
	labelRole       = "machine.openshift.io/cluster-api-machine-role"
	labelType       = "machine.openshift.io/cluster-api-machine-type"
	labelOS         = "machine.openshift.io/os-id"
	labelWorker     = "node-role.kubernetes.io/worker"
	roleWorker      = "worker"
	osWindows       = "Windows"
)

// Options describe the MachineSet. Empty fields come from the model.
type Options struct {
	Platform bundle.Platform
	Cluster  Cluster
	Name     string
	// Zone is an availability zone, or a failure domain of vSphere or Nutanix.
	Zone string
	// Image is the Windows image: an AMI, a Marketplace image or resource ID, an image, or a template.
	Image        string
	InstanceType string
	// Model is the name of the MachineSet to copy; empty chooses one.
	Model string
	// Set are changes of the providerSpec, path=value each, which are applied last.
	Set []string
}

// Cluster holds the values of a cluster that a MachineSet needs.
type Cluster struct {
	Platform bundle.Platform
	// InfrastructureName is the cluster's identity, in labels and in the names of the installer's resources.
	InfrastructureName string
	// Region is for AWS and GCP, Project for GCP, the resource groups are for Azure.
	Region, Project, ResourceGroup, NetworkResourceGroup string
	FailureDomains                                       []FailureDomain
	// Sets are the existing MachineSets.
	Sets []Source
}

// FailureDomain is a zone of vSphere or Nutanix, which only Infrastructure/cluster defines.
type FailureDomain struct {
	Name, Zone string
	// For vSphere.
	Server, Datacenter, Datastore, Folder, ResourcePool string
	Networks                                            []string
	// For Nutanix.
	Element Identifier
	Subnets []Identifier
}

// Identifier names a resource of Nutanix by its UUID or its name.
type Identifier struct{ UUID, Name string }

func (i Identifier) object() object {
	if i.UUID != "" {
		return object{"type": "uuid", "uuid": i.UUID}
	}
	return object{"type": "name", "name": i.Name}
}

// Source is an unparsed object of the cluster.
type Source struct {
	Ref  bundle.Ref
	JSON []byte
}

// MachineSet returns the manifest of a MachineSet for Windows. With findings of severity error, the manifest is zero.
func MachineSet(o Options) (Manifest, bundle.Findings) {
	d := draft{options: o, ref: bundle.Ref{Group: "machine.openshift.io", Kind: "MachineSet", Namespace: Namespace, Name: o.Name}}
	known := d.checkPlatform()
	d.checkName()
	if !known {
		// What else is missing depends on the platform, but every one needs an image.
		if o.Image == "" && len(o.Cluster.Sets) == 0 {
			d.refuse(reason.ValueMissing, providerField, "the image of Windows is not known", "give --image")
		}
		return Manifest{}, d.findings.Sorted()
	}
	if !d.chooseModel() {
		return Manifest{}, d.findings.Sorted()
	}
	d.provider = d.baseSpec()
	d.forWindows()
	d.putValue(mustParsePath("userDataSecret.name"), UserDataSecret)
	d.applySet()
	d.checkNeeds()
	d.checkUsable()
	if d.findings.Refused() {
		return Manifest{}, d.findings.Sorted()
	}
	d.addFinding(
		bundle.SeverityInfo, reason.ReplicasZero, "spec.replicas",
		"is 0, so that no machine starts before you have read the manifest", d.scaleCommand(),
	)
	return Manifest{Object: d.object(), Comment: d.comment()}, d.findings.Sorted()
}

// draft is an unfinished MachineSet.
type draft struct {
	options  Options
	ref      bundle.Ref
	model    model
	provider object
	findings bundle.Findings
}

func (d *draft) addFinding(severity bundle.Severity, why, field, message, fix string) {
	d.findings = append(d.findings, bundle.Finding{
		Severity: severity, Reason: why, Object: d.ref, Field: field, Message: message, Fix: fix,
	})
}

func (d *draft) refuse(why, field, message, fix string) {
	d.addFinding(bundle.SeverityError, why, field, message, fix)
}

func (d *draft) checkPlatform() bool {
	p, of := d.options.Platform, d.options.Cluster.Platform
	switch {
	case p == "" && of == "":
		d.refuse(
			reason.ValueMissing, "", "the platform is not known",
			"give --platform "+platformNames("|")+", or the cluster with --from",
		)
	case !slices.Contains(Platforms(), p):
		d.refuse(
			reason.PlatformUnsupported, "", fmt.Sprintf("%q has no Machine API for Windows machines", string(p)),
			"use one of "+platformNames(", ")+"; other hosts join by the ConfigMap windows-instances",
		)
	case of != "" && p != of:
		d.refuse(
			reason.PlatformMismatch, "", fmt.Sprintf("--platform is %s, but the cluster is on %s", Flag(p), of),
			"leave --platform out, or read the right cluster",
		)
	default:
		return true
	}
	return false
}

var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

func (d *draft) checkName() {
	name, limit := d.options.Name, maxSetName(d.options.Platform)
	const field = "metadata.name"
	switch {
	case name == "":
		d.refuse(reason.ValueMissing, field, "the MachineSet needs a name", "give --name")
	case !label.MatchString(name):
		d.refuse(
			reason.NameInvalid, field, fmt.Sprintf("%q is not a DNS label", name),
			"use lower case letters, digits and hyphens, no hyphen first or last",
		)
	case d.options.Platform == bundle.PlatformGCP && (name[0] < 'a' || name[0] > 'z'):
		d.refuse(
			reason.NameInvalid, field,
			fmt.Sprintf("%q does not begin with a letter, as names of GCP instances must", name),
			"begin the name with a letter",
		)
	case len(name) > limit:
		why := fmt.Sprintf(
			"the names of its Machines are %d characters longer, and have at most %d", render.MachineSuffix,
			limit+render.MachineSuffix,
		)
		if computerNames(d.options.Platform) {
			why = fmt.Sprintf(
				"the names of its Machines are %d characters longer and become computer names, which have at most %d",
				render.MachineSuffix, limit+render.MachineSuffix,
			)
		}
		d.refuse(
			reason.NameTooLong, field, fmt.Sprintf("%q has %d characters: %s", name, len(name), why),
			fmt.Sprintf("use a name of at most %d characters", limit),
		)
	}
	if name != "" && slices.ContainsFunc(d.options.Cluster.Sets, func(s Source) bool { return s.Ref.Name == name }) {
		d.refuse(
			reason.NameTaken, field,
			fmt.Sprintf("the cluster has a MachineSet %q; applying this one would scale it to 0", name),
			"choose another name, or change the existing one with oc edit",
		)
	}
	if d.options.Cluster.InfrastructureName == "" {
		d.refuse(
			reason.ValueMissing, "metadata.labels", "the infrastructure name of the cluster is not known",
			"give --infrastructure-name, or the cluster with --from",
		)
	}
}

// putValue changes the providerSpec. A model with another type where an object or list belongs is refused.
func (d *draft) putValue(p path, value any) {
	changed, err := p.put(d.provider, value)
	if err != nil {
		d.refuse(
			reason.ModelInvalid, providerField+"."+p.String(), "cannot be set: "+err.Error(),
			"choose another model with --model",
		)
		return
	}
	d.provider, _ = changed.(object)
}

func (d *draft) object() object {
	cluster, name := d.options.Cluster.InfrastructureName, d.options.Name
	return object{
		"apiVersion": "machine.openshift.io/v1beta1",
		"kind":       "MachineSet",
		"metadata": object{
			"name": name, "namespace": Namespace,
			"labels": object{labelCluster: cluster},
		},
		"spec": object{
			"replicas": 0,
			"selector": object{"matchLabels": object{labelCluster: cluster, labelMachineSet: name}},
			"template": object{
				"metadata": object{"labels": object{
					labelCluster: cluster, labelMachineSet: name, labelRole: roleWorker, labelType: roleWorker, labelOS: osWindows,
				}},
				"spec": object{
					"metadata":     object{"labels": object{labelWorker: ""}},
					"providerSpec": object{"value": d.provider},
				},
			},
		},
	}
}

func (d *draft) scaleCommand() string {
	return fmt.Sprintf("oc scale machineset/%s -n %s --replicas=N", d.options.Name, Namespace)
}

func (d *draft) comment() []string {
	from := "Made by wmco from flags alone."
	if d.model.exists() {
		from = "Made by wmco from " + d.model.ref.String() + "."
	}
	return []string{
		from,
		"replicas is 0, so that no machine starts before a person has read this. When the Secret " + UserDataSecret + " is there:",
		"  " + d.scaleCommand(),
	}
}

func joinNames(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
