package reason

// Events returns the entries of Events of the operator and of node agents that are in no status. An Event may also have
// a reason of a host, a node, a condition or a finding.
func Events() []Entry {
	return []Entry{
		{"MachineSetup", "", "The host of the Machine is a node.", fixNothing},
		{
			"MachineSetupFailure", "",
			"The host of the Machine cannot become a node. The message begins with the reason.",
			"what the message says; `wmco explain` has the reason, and the host is tried again",
		},
		{
			"MachineDeleted", "",
			"A Machine was deleted because its host refuses the login, or, with `keys: Replace`, the key. Its MachineSet creates another one.",
			fixNothing,
		},
		{
			"MachineDeletionFailed", "", "A Machine that has to be replaced cannot be deleted.",
			"what the message says; it is tried again",
		},
		{
			"MachineDeletionRestricted", "",
			"A Machine is not replaced now: others of its MachineSet were replaced and none has joined since, or " +
				"it is a copy of a Machine of the Cluster API that the operator may not delete. The message says which.",
			"what the message says; if others were replaced, look why hosts of the MachineSet refuse the key: their user data, or their image",
		},
		{"InstanceSetup", "", "The instance is a node.", fixNothing},
		{
			"InstanceSetupFailure", "", "The instance cannot become a node. The message begins with the reason.",
			"what the message says; `wmco explain` has the reason, and the host is tried again",
		},
		{"InstanceRemovalStarted", "", "The instance is removed: its node is drained, and its host is cleaned up.", fixNothing},
		{
			"InstanceRemovalWaiting", "", "The instance cannot be removed yet. The message says why.",
			"what the message says; it is tried again. If the host no longer exists, `oc annotate node NODE " +
				"windowsmachineconfig.openshift.io/remove=force`",
		},
		{
			"InstanceTeardown", "",
			"The instance was removed. After a removal by force, the message says what stays on the host.",
			"nothing; after a removal by force, what the message says, before the host is used again",
		},
		{
			"RemovalForgotten", "",
			"The annotation that asks for a removal was taken off, because the host has an entry again.",
			"to remove the host, remove its entry from windows-instances",
		},
		{
			"PinnedImageNotPulled", "",
			"An image of a PinnedImageSet is not on the node after several tries, or the disk has no room for it. It is tried again.",
			"what the message says: the name and the registry of the image, or space on drive C:",
		},
		{
			"NodeRelabeled", "", "The Node had another label kubernetes.io/os, which was written back.",
			"look at the host: its kubelet, or whoever has the kubelet's certificate, has written it",
		},
		{"AgentRepaired", "", "The node agent was silent, and was repaired over SSH.", fixNothing},
		{
			"AgentSilent", "", "The node agent is silent, and cannot be repaired over SSH.",
			"what the message says; start the service windows-machine-config-agent on the host",
		},
		{
			"LoginNotConfirmed", "",
			"The operator cannot log in to the host of a node with its key, or with the account of its entry. What the host accepts stays.",
			"what the message says; docs/keys.md",
		},
		{"PayloadCopied", "", "The executables of a new version of the operator are on the host.", fixNothing},
		{
			"PayloadNotCopied", "",
			"The executables of a new version of the operator cannot be copied. The node runs on with those that it has.",
			"what the message says; it is tried again",
		},
		{"AdoptionPlanned", "", "The message says what adopting the node changes. Nothing was changed yet.", fixNothing},
		{"NodeAdopted", "", "A node of the existing operator is one of this operator.", fixNothing},
		{
			"NodeNotAdopted", "",
			"A node of the existing operator cannot be adopted. Nothing was changed, or it was changed back.",
			"what the message says; it is tried again",
		},
		{
			"LayerReplaced", "", "A Secret that nodes fetch was damaged, or was another one, and was replaced.",
			"see in the audit log who writes Secrets of the operator's namespace",
		},
		{
			"ChangeHeld", "", "A change of the inputs would stop pods, and waits for a confirmation.",
			"undo it, or `wmco confirm` with what the message says",
		},
		{
			"StatusNotServed", "",
			"The cluster does not serve WindowsNodesStatus, so conditions are in Events alone.", "apply deploy/crd",
		},
		{"RolloutBegun", "", "Nodes get another bundle.", fixNothing},
		{"RolloutDone", "", "All nodes have what is published.", fixNothing},
		{"RolloutResumed", "", "The rollout goes on.", fixNothing},
		{"TurnBegun", "", "The node is drained, or its services restart, for its next bundle.", fixNothing},
		{"TurnEnded", "", "The node has its bundle, and is used again.", fixNothing},
		{
			"TurnPostponed", "", "The node was given back before it had its bundle. The message says why.",
			"what the message says; the node gets another turn",
		},
		{
			"HealthCheckTimeoutShort", "",
			"A MachineHealthCheck would replace the Machine of a node while that boots.",
			"a longer timeout in the MachineHealthCheck, as the message says",
		},
		{"BundleApplied", "", "The node agent has applied what is published for the node.", fixNothing},
		{
			"BundleRolledBack", "",
			"A service did not become healthy, or the change could not be made, so the host has what it had " +
				"before. The message has the last lines of the service's log.",
			"correct the inputs, or what the message names; then `wmco retry NODE`",
		},
		{
			"BundleFailed", "",
			"The node agent cannot fetch, read or apply what is published. It tries again, less and less often.",
			"what the message says",
		},
		{
			"BundleRefused", "",
			"The node agent refuses what is published, such as because it is not signed for this node. The node keeps what it has.",
			"what the message says; see in the audit log who writes annotations of the Node",
		},
		{
			"DriftRepaired", "", "Something on the host differed from its bundle, and was repaired.",
			"find out who has changed it, if it happens again",
		},
		{
			"ServiceCrashed", "", "A service has ended by itself. Windows starts it again.",
			"the log of the service under C:\\var\\log on the host",
		},
		{
			"HostBooting", "",
			"The host boots, as the annotation `reboot` asks, or the setting `windowsReboots` for what Windows waits for.",
			fixNothing,
		},
		{"HostBootFailed", "", "The host cannot be booted.", "what the message says; boot it by hand"},
		{"SSHServerStarted", "", "The OpenSSH server of the host was stopped, so the node agent has started it.", fixNothing},
		{
			"SSHServerStopped", "", "The OpenSSH server of the host does not run, so the operator cannot log in.",
			"see runbooks/WindowsSSHServerStopped.md",
		},
		{"HostNetworkRestarted", "", "The Host Network Service has restarted, so kube-proxy was restarted.", fixNothing},
	}
}
