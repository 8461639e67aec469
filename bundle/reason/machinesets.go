package reason

// Reasons of findings of `wmco machineset`.
const (
	ValueMissing          = "ValueMissing"
	PlatformMismatch      = "PlatformMismatch"
	NameInvalid           = "NameInvalid"
	NameTooLong           = "NameTooLong"
	NameTaken             = "NameTaken"
	ImageInvalid          = "ImageInvalid"
	ZoneInvalid           = "ZoneInvalid"
	SetInvalid            = "SetInvalid"
	ModelMissing          = "ModelMissing"
	ModelInvalid          = "ModelInvalid"
	InstanceTypeUnknown   = "InstanceTypeUnknown"
	InstanceTypeNotAMD64  = "InstanceTypeNotAMD64"
	SubnetOfAnotherZone   = "SubnetOfAnotherZone"
	SubnetRenamed         = "SubnetRenamed"
	DiskSmall             = "DiskSmall"
	NetworkUnusable       = "NetworkUnusable"
	ConfidentialComputing = "ConfidentialComputing"
	ImageGeneration       = "ImageGeneration"
	SecurityKept          = "SecurityKept"
	LabelsLeftOut         = "LabelsLeftOut"
	TaintsLeftOut         = "TaintsLeftOut"
	ReplicasZero          = "ReplicasZero"
)

func machineSets() []Entry {
	return []Entry{
		{ValueMissing, isError, "A value that the cloud needs is in no flag, model or object.", "Give the flag that the finding names, or the cluster with `--from`."},
		{PlatformMismatch, isError, "`--platform` is not the platform of the cluster.", "Omit `--platform`, or read the right cluster."},
		{NameInvalid, isError, "The name of the MachineSet is not a DNS label, or not valid for the cloud.", "Use lower case letters, digits and hyphens, with a letter first and no hyphen last."},
		{NameTooLong, isError, "The name of the MachineSet is too long for the names of its Machines.", fixInFinding},
		{NameTaken, isError, "The cluster has a MachineSet of this name; applying the manifest would scale it to 0.", "Choose another name, or change the existing MachineSet with `oc edit`."},
		{ImageInvalid, isError, "`--image` does not have the form of the platform.", fixInFinding},
		{ZoneInvalid, isError, "`--zone` is not a zone of the region or a failure domain of the cluster.", "Give one of the zones or failure domains of the cluster."},
		{SetInvalid, isError, "A `--set` has no value, an unknown path, or a value of the wrong type.", "Write `--set PATH=VALUE` with a field of the platform's providerSpec."},
		{ModelMissing, isError, "The MachineSet of `--model` is not in the inputs, or is of another platform.", fixInFinding},
		{ModelInvalid, errorOrWarning, "A MachineSet of the cluster cannot be used as the model. Warning if you did not choose it.", "Choose another one with `--model`."},
		{InstanceTypeUnknown, isError, "The platform has no instance types.", "Omit `--instance-type`, and give CPUs and memory with `--set`."},
		{InstanceTypeNotAMD64, isError, "The instance type or the model's machines have ARM processors. Windows nodes need x86-64.", "Give `--instance-type`, or another `--model`."},
		{SubnetOfAnotherZone, isError, "The model's subnet is in another zone.", "Give the subnet: `--set subnet='{id: subnet-...}'`."},
		{SubnetRenamed, isWarning, "The model's subnet is in another zone; its name is used with the zone replaced.", "Check that a subnet of this name exists."},
		{DiskSmall, isWarning, "The root disk is too small: a Windows node needs 120 GB, and Azure at least the size of the image (127 GB without `smalldisk`). On AWS also: `blockDevices` has no root disk.", "Pass the `--set` of the finding. On Azure, an image whose SKU contains `smalldisk` needs only 120 GB."},
		{NetworkUnusable, isWarning, "The providerSpec has several networks, static addresses or EFA. A Windows node has one network card with DHCP.", fixInFinding},
		{ConfidentialComputing, isWarning, "The providerSpec turns on confidential computing, which the image and the instance type must support.", "Turn it off with the `--set` of the finding, or give such an `--image`."},
		{ImageGeneration, isWarning, "The image is of generation 1, which Azure sizes from v6 on do not boot.", "Give an image with an SKU that ends in -g2 (`--image`), or a size such as Standard_D4s_v5 (`--instance-type`)."},
		{SecurityKept, isInfo, "The model uses a security type that needs an image of generation 2.", "Use one, for example with an SKU that ends in -g2."},
		{LabelsLeftOut, isInfo, "The model labels its nodes; the new MachineSet does not.", "Add them if the Windows nodes should have them."},
		{TaintsLeftOut, isInfo, "The model taints its nodes; the new MachineSet does not. The kubelet sets `os=Windows:NoSchedule`.", "Add them if the Windows nodes should have them."},
		{ReplicasZero, isInfo, "The manifest has no replicas, so that no machine starts before your review.", "Scale the MachineSet with the command in the finding."},
	}
}
