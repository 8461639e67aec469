package reason

// Reasons of findings about one node.
const (
	FactsUnknown          = "FactsUnknown"
	FactsInvalid          = "FactsInvalid"
	FactsMismatch         = "FactsMismatch"
	FactsUnmatched        = "FactsUnmatched"
	FactsContradicted     = "FactsContradicted"
	NetworkPending        = "NetworkPending"
	NetworksUnknown       = "NetworksUnknown"
	VXLANPortOnVSphere    = "VXLANPortOnVSphere"
	VXLANPortUnsupported  = "VXLANPortUnsupported"
	MachineWithoutAddress = "MachineWithoutAddress"
	MachineNameTooLong    = "MachineNameTooLong"
	NodeNameMismatch      = "NodeNameMismatch"
	NodeNameReserved      = "NodeNameReserved"
	NodeNameUnknown       = "NodeNameUnknown"
	InstanceInvalid       = "InstanceInvalid"
	InstanceTaken         = "InstanceTaken"
	AddressClaimed        = "AddressClaimed"
	HostRecordDamaged     = "HostRecordDamaged"
	InstanceUnresolvable  = "InstanceUnresolvable"
	InstanceAmbiguous     = "InstanceAmbiguous"
	BundleTooLarge        = "BundleTooLarge"
)

func nodeReasons() []Entry {
	return []Entry{
		{FactsUnknown, isInfo, "The facts of the host are not known. A host without a Node has its join-stage bundle. That of a Node shows what objects alone say of it; the message lists what waits for the facts. It is never applied.", "To see the whole bundle, run `wmco-node facts` on the host and give the output as `--facts`."},
		{FactsInvalid, isError, "A fact that the host reports is not valid, such as a host name that is not a DNS name.", "Print the facts again with `wmco-node facts`."},
		{FactsMismatch, isError, "The facts are of another host: none of its addresses is the node's.", "Give the facts of this host."},
		{FactsUnmatched, errorOrWarning, "Facts belong to no node of the inputs, or the host that `--host` reaches is not the node that is asked for. They are not used. It is an error for a node that exists.", "Give the facts of a node in the inputs; check that `--host` and `--node` or `--instance` are the same host."},
		{FactsContradicted, isWarning, "A Node reports facts that cannot be those of its host: an address that neither its Machine nor its entry has, another subnet than OVN gave it, or more addresses than a host has. They are not used, and the node keeps what it has.", "Nothing if the node agent has written its report again a minute later. Otherwise correct the address in the Machine, in windows-instances or in the DNS, or find out who writes the annotation."},
		{NetworkPending, isInfo, "The overlay network of the node does not exist yet. cni.conf and kube-proxy are added when hybrid-overlay-node has created it.", "Nothing with the operator, which resumes by itself. After `wmco apply`, apply again. If the network does not appear, check hybrid-overlay-node's log."},
		{NetworksUnknown, isError, "The Host Networking Service of the host does not answer, so the networks of the node are not known. What is published for the node stays.", "Nothing if it passes. Otherwise look at the service hns on the host, or boot it with the annotation `windowsmachineconfig.openshift.io/reboot`."},
		{VXLANPortOnVSphere, isWarning, "The hybrid overlay of a cluster on vSphere has the VXLAN port 4789, which ESXi and NSX use for themselves. Packets between Pods on different hosts can be lost.", "Set another port, such as 9898, together with the hybrid overlay. It cannot be changed in a cluster that has one."},
		{VXLANPortUnsupported, isError, "Windows Server 2019 cannot use the cluster's VXLAN port.", "Use Windows Server 2022 or later, or the default port 4789."},
		{MachineWithoutAddress, isInfo, "A Machine has no internal IPv4 address yet, so nothing is rendered for it.", "Wait until the cloud has assigned the address."},
		{MachineNameTooLong, isError, "The name of a Machine is too long for a Windows computer name.", "Give the MachineSet a name of at most 9 characters."},
		{NodeNameMismatch, isWarning, "The host would now register under another name than its Node has. The node keeps its name.", "Nothing. If the host was renamed on purpose, remove the node and let it join again."},
		{NodeNameReserved, isWarning, "A Machine or a Node has a name that no file on Windows can have, such as `con`. It is left out; the others are not affected.", "Rename the computer and let it join again, or delete the object."},
		{NodeNameUnknown, isError, "On AWS and Google Cloud, a Node has the name that the instance metadata of its host has, and the host that is to join does not read it.", "Turn on the instance metadata of the host, and check on the host that `http://169.254.169.254` is reached without a proxy."},
		{InstanceInvalid, isWarning, "An entry of windows-instances is not valid. It is skipped; the others are not affected.", "Write the entry as `<IPv4 address or DNS name>: username=<name>`."},
		{AddressClaimed, isWarning, "A Node reports an address of a Machine or an entry that is another host by the operator's record. The address is ignored, and the other host is not affected.", "Remove the entry if it is the same host. Otherwise look at the host of the Node that reports it: its kubelet, or whoever has the kubelet's certificate, has written that."},
		{HostRecordDamaged, isWarning, "The operator's record of a host cannot be read. The host is not reached, and its node gets nothing new.", "Remove the record with the command in the message; the host is then reached as at its first contact."},
		{InstanceTaken, isWarning, "An entry of windows-instances is a host that a Machine or another entry already stands for. It is skipped.", "Remove the entry."},
		{InstanceUnresolvable, isWarning, "The name of an entry of windows-instances has no IPv4 address in the cluster's DNS, so the operator cannot reach the host. A host that has joined stays. Only the operator reports this.", "Correct the name or its DNS record, or write the IPv4 address in its place."},
		{InstanceAmbiguous, isWarning, "The name of an entry of windows-instances has several IPv4 addresses. Only the operator reports this.", "Nothing if they are of one host. Otherwise write the address of each host in place of the name."},
		{BundleTooLarge, isError, "A layer of a node's bundle is larger than what can be published. What is published for the node stays, and other nodes are not affected unless it is the layer that they share. Only the operator reports this.", "Make the inputs smaller, such as mirror sets and trusted CAs."},
	}
}
