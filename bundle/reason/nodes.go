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
		{FactsUnknown, isInfo, "The facts of the host are not known, so its bundle is incomplete and never applied. The message lists what is missing.", "To see the complete bundle, save the output of `wmco-node facts` on the host, and pass it with `--facts FILE`."},
		{FactsInvalid, isError, "A fact of the host is not valid, such as a host name that is not a DNS name.", "If you edited the file of `--facts`, write it again with `wmco-node facts`. Otherwise correct the value on the host."},
		{FactsMismatch, isError, "The facts are of another host: none of its addresses is the node's.", "Give the facts of this host."},
		{FactsUnmatched, errorOrWarning, "Facts belong to no node of the inputs, or `--host` is not the requested node. They are not used. Error for an existing node.", "Check that facts, `--host`, and `--node` or `--instance` belong to the same host."},
		{FactsContradicted, isWarning, "A Node reports impossible facts, which are ignored; the node keeps its bundle and is in `status.refused`: an address that neither its Machine nor its entry has, a subnet not assigned by OVN, or too many addresses.", "None if it disappears within a minute. Otherwise correct the Machine, windows-instances or the DNS, or find out who writes the annotation."},
		{NetworkPending, isInfo, "The overlay network of the node, for which cni.conf and kube-proxy wait, does not exist yet.", "None with the operator. After `wmco apply`, apply again. If it does not appear, read hybrid-overlay-node's log."},
		{NetworksUnknown, isError, "The Host Networking Service of the host does not respond. The node keeps its published bundle.", "If the finding remains, check the service hns on the host, or reboot it: `wmco reboot NODE`."},
		{VXLANPortOnVSphere, isWarning, "The hybrid overlay on vSphere has the VXLAN port 4789, which ESXi and NSX use. Packets between hosts can be lost.", "Set another port, such as 9898, together with the hybrid overlay; it cannot be changed later."},
		{VXLANPortUnsupported, isError, "Windows Server 2019 cannot use the cluster's VXLAN port.", "Use Windows Server 2022 or later, or the default port 4789."},
		{MachineWithoutAddress, isInfo, "A Machine has no internal IPv4 address yet, so nothing is rendered for it.", "Wait until the cloud has assigned the address."},
		{MachineNameTooLong, isError, "The name of a Machine is too long for a Windows computer name.", "Give the MachineSet a name of at most 9 characters."},
		{NodeNameMismatch, isWarning, "The host would now register under a different name. The Node keeps its name.", "None. After a wanted renaming, remove the node and let it join again."},
		{NodeNameReserved, isWarning, "A Machine or Node has a name that no file on Windows can have, such as `con`. It is skipped.", "Rename the computer and let it join again, or delete the object."},
		{NodeNameUnknown, isError, "On AWS and Google Cloud, Nodes are named by the instance metadata, which the joining host cannot read.", "Turn on the instance metadata, and check that the host reaches `http://169.254.169.254` without a proxy."},
		{InstanceInvalid, isWarning, "An entry of windows-instances is not valid and skipped.", "Write the entry as `<IPv4 address or DNS name>: username=<name>`."},
		{AddressClaimed, isWarning, "A Node reports an address that the operator has recorded for another host. The address is ignored.", "If both are the same host, remove one entry from windows-instances. Otherwise find out who has set the address: only the Node's kubelet, or a holder of its client certificate, can. An unknown address may be a compromise."},
		{HostRecordDamaged, isWarning, "The operator's record of a host cannot be read. The host is not contacted.", "Remove the record with the command in the message; the host then counts as new."},
		{InstanceTaken, isWarning, "An entry of windows-instances is a host that already belongs to a Machine or another entry. It is skipped.", "Remove the entry."},
		{InstanceUnresolvable, isWarning, "The name of an entry of windows-instances has no IPv4 address in the cluster's DNS. An existing node stays." + byOperator, "Correct the name or its DNS record, or use the IPv4 address."},
		{InstanceAmbiguous, isWarning, "A DNS name in windows-instances has several IPv4 addresses. `wmco validate` does not look names up." + byOperator, "If they belong to several hosts, list each host by its IPv4 address. Otherwise none."},
		{BundleTooLarge, isError, "A layer of a node's bundle is too large to be published. The node keeps its published bundle." + byOperator, "Reduce mirror sets, trusted CAs or other large inputs."},
	}
}
