package reason

// fixNothing is for states that need no action.
const fixNothing = "no action needed"

// hostStatus are the reasons of hosts that join or are removed.
func hostStatus() []Entry {
	return []Entry{
		{"Joined", "", "The host is a node with its bundle.", fixNothing},
		{"Joining", "", "The host is becoming a node. The status has the step.", fixNothing},
		{"Unreachable", "", "The host, or in a rollout its node, cannot be reached.", "check the address, the firewall and that the host runs; it is retried every 15 s"},
		{"HostSilent", "", "The host accepts the login, but a command or file transfer on it does not end.", "run a command on it over SSH; restart the service sshd, or the host"},
		{"LoginRefused", "", "The host does not accept the key. A Machine whose host refuses it for 30 minutes is replaced.", "add the public key on the host of an instance"},
		{"HostKeyChanged", "", "The host has another key than the pinned one.", "if the host was reinstalled, run the command in the message"},
		{"RolledBack", "", "A service did not become healthy or the change failed, so the previous state was restored. The message has the cause.", "correct the inputs, or what the message names; then `wmco retry NODE`"},
		{"Rebooting", "", "The host reboots to apply its computer name or a Windows feature.", fixNothing},
		{"WaitingForNode", "", "The kubelet runs, and its Node does not exist yet.", "wait some minutes; then read the log of the kubelet under C:\\var\\log on the host"},
		{"Completing", "", "The Node exists, and its complete bundle is being applied.", fixNothing},
		{"SameHost", "", "Two entries are one host, two Machines have one address, or the host is already another node. Nothing is changed on it.", "remove the entry that the message names, or the Machine that has no instance in the cloud"},
		{"NodeNameTaken", "", "The host would register as an existing Node that is another host.", "rename the computer, or delete the Node if this host left it behind"},
		{"NotTheHost", "", "The host reports another Node than its record has. Nothing is changed on it.", "check which host has the address; if the computer was renamed, restore its name"},
		{"AddressNotOnHost", "", "The host does not have the address of its entry, for example behind NAT. Nothing is changed on it.", "use the address of the host in the network of the cluster"},
		{"OtherRun", "", "Another process is changing the host or uploading the node agent: an operator, `wmco apply` or the host's agent. The message quotes it.", "wait; if it does not end, end its process on the host"},
		{"APIServerError", "", "The API server does not respond, or responds with an error. The host is not at fault.", "nothing for the host: it is retried every five seconds"},
		{"JoinFailed", "", "The join failed for a cause in the message that has no reason of its own.", "follow the message; it is retried"},
		{"CertificateExpired", "", "The certificate of the kubelet has expired.", "delete the Machine; an instance joins again automatically"},
		{"MachineTooOld", "", "The host of the Machine could not join within two hours, and the cluster no longer approves a first certificate for it.", "delete the Machine"},
		{"InstanceRejoins", "", "The certificate of an instance's kubelet has expired, so the host joins again as a new node.", fixNothing},
		{"CopyingExecutables", "", "Executables of its next bundle are being copied to the host of a node. The status has the step.", fixNothing},
		{"RepairingAgent", "", "The node agent did not report and is being repaired over SSH. The status has the step.", fixNothing},
		{"CleaningUp", "", "The host is being removed and everything managed on it deleted. The status has the step.", fixNothing},
		{"DrainBlocked", "", "Pods of the node do not end, mostly because of a PodDisruptionBudget, an admission webhook or a policy, which the message names.", "scale the workload up, or move its Pods; the drain is retried"},
		{"RemovalNotConfirmed", "", "The host has no entry because the whole list is empty or was deleted.", "restore the entry, or run the command in the message"},
	}
}

// nodeStatus are the reasons of nodes, and of their places in rollouts.
func nodeStatus() []Entry {
	return []Entry{
		{"Applied", "", "The published bundle is applied.", fixNothing},
		{"Applying", "", "The bundle is being applied, or waits for its confirmation.", fixNothing},
		{"NeedsPermission", "", "The change has a higher impact than permitted. Nothing was changed.", "none; the operator drains the node first"},
		{"PayloadMissing", "", "An executable is not on the host. Nothing was changed.", "none; the operator copies it; by hand, `wmco apply --host` with `--payload`"},
		{"DiskFull", "", "Drive C: has no space for the bundle, so the previous state was restored.", "free space on it: unused images, logs; it is retried within a minute"},
		{"RebootPending", "", "The rest of the bundle takes effect with the next reboot.", "`wmco reboot NODE`"},
		{"Failed", "", "The bundle cannot be fetched, read or applied, or the node failed in its rollout. It is retried with a growing delay.", "follow `wmco status NODE`"},
		{"Unpublished", "", "Nothing is published for the node yet.", "wait some seconds; then check the conditions Published and InputsAccepted"},
		{"WaitingForAdoption", "", "The host is a node of the existing operator.", "`wmco adopt NODE`: docs/takeover.md"},
		{"Adopting", "", "The impact of the adoption is known, and the node waits for a slot.", fixNothing},
		{"NewerOperator", "", "A newer operator has published the bundle of the node.", "leave the annotation alone, and use the wmco of the operator's version"},
		{"Updated", "", "The node has the latest bundle.", fixNothing},
		{"Step", "", "The bundle of the node is being published.", fixNothing},
		{"Settling", "", "The node is a canary with the new bundle, and is observed for `rollout.settle`.", fixNothing},
		{"WaitingForCanary", "", "The node waits until the canaries are healthy with the new bundle.", fixNothing},
		{"WaitingForWindow", "", "The node waits for a window of `rollout.windows`. The message has its time.", "wait, or change `rollout.windows` in windows-machine-config"},
		{"WaitingForAvailability", "", "As many nodes are unavailable as `rollout.maxUnavailable` allows.", "wait; other nodes that are not Ready hold the slots: `wmco status`"},
		{"WaitingForParallel", "", "As many nodes restart services as `rollout.maxParallel` allows.", fixNothing},
		{"Paused", "", "The node or the rollout is paused.", "`wmco resume NODE`, or `rollout.paused: false` in windows-machine-config"},
		{"Stopped", "", "Failed nodes have stopped the rollout. The message names them.", "correct the inputs; then `wmco retry` for the failed nodes"},
		{"PayloadPending", "", "Executables are being copied to the host.", fixNothing},
		{"WaitingForRoom", "", "The disk of the host is full.", "free space on drive C:; it continues automatically"},
		{"Leaving", "", "The node is being removed: its Machine is deleted, or its host is removed.", fixNothing},
		{"NoBundle", "", "No bundle is rendered for the node.", "correct the findings of the node: `wmco status NODE`"},
	}
}

// conditionReasons are the reasons of the conditions of WindowsNodesStatus.
func conditionReasons() []Entry {
	return []Entry{
		{"Accepted", "", "The inputs are accepted.", fixNothing},
		{"NodesRefused", "", "The inputs of some nodes are refused. These nodes keep their published bundles; others are updated.", "correct the inputs that `wmco status` names"},
		{"Published", "", "The bundles of all nodes are published.", fixNothing},
		{"InputsRefused", "", "The inputs are refused, and the published bundles stay.", "correct them: the message has the first finding, `wmco validate --from cluster` all"},
		{"PublishFailed", "", "Layers cannot be written to the cluster.", "follow the message; it is retried"},
		{"Present", "", "No input was deleted.", fixNothing},
		{"InputsDeleted", "", "An input of existing nodes was deleted. The published bundles stay until you confirm it.", "restore the object, or `wmco confirm --all --input INPUT`"},
		{"NothingHeld", "", "No change is held.", fixNothing},
		{"NoWarnings", "", "The inputs have no warnings.", fixNothing},
		{"InputsWarned", "", "The inputs are accepted, but applied differently from what they ask for.", "`wmco validate --from cluster` has the findings"},
		{"Reached", "", "Urgent inputs have reached all nodes.", fixNothing},
		{"UrgentInputsHeld", "", "An urgent input, such as a new CA, cannot reach some nodes.", "check the nodes in the message: `wmco status NODE`"},
		{"ClocksAgree", "", "The clocks of nodes and API servers agree.", fixNothing},
		{"ClockSkew", "", "The clock of a host differs from that of the API servers.", "set it: w32tm /resync on the host"},
		{"HostNetworksStable", "", "No Host Network Service of a node crashes repeatedly.", fixNothing},
		{"HostNetworkUnstable", "", "The Host Network Service of a node crashes repeatedly, so Services may fail there.", "install the updates of Windows, or `wmco reboot NODE`"},
		{"SSHServersRun", "", "No OpenSSH server of a node is known to be stopped.", fixNothing},
		{"SSHServerStopped", "", "The OpenSSH server of a node does not run, and the node agent cannot start it. Pods are not affected, but the operator cannot log in.", "`oc describe node NODE` has the error; docs/runbooks/WindowsSSHServerStopped.md"},
		{"ImagesReachable", "", "No image gateway of a node is known to miss all places of a registry.", fixNothing},
		{"ImagesUnreachable", "", "No mirror answers the image gateway of a node for a registry, and the registry does not answer or must not be asked, for ten minutes or more. Pods that need its images do not start there.", "docs/runbooks/WindowsImagesUnreachable.md"},
		{"NoRebootPending", "", "No node needs a reboot for Windows itself.", fixNothing},
		{"WindowsRebootPending", "", "Windows itself needs a reboot of a node, for example after updates.", "`wmco reboot NODE`, or `windowsReboots: Coordinate` in windows-machine-config"},
		{"NamespaceNotMonitored", "", "Cluster monitoring does not scrape the operator's namespace.", "run the command in the message, which sets the label"},
		{"InstalledElsewhere", "", "The operator is not in the recommended namespace, which the Prometheus objects name.", "install it in openshift-windows-machine-config-operator; only metrics and alerts need that"},
		{"NamespaceNotReadable", "", "The operator may not read its namespace, so it cannot check its monitoring.", "apply deploy/rbac/operator.yaml"},
		{"KeysAccepted", "", "The operator has logged in to the host of each node with the key of the Secret cloud-private-key.", fixNothing},
		{"KeysChanging", "", "Hosts are changing keys, and accept the earlier one until the operator has logged in with the new one.", "none; hosts that are off follow when they are back"},
		{"KeyNotAccepted", "", "The operator cannot log in to the host of a node with its key or the account of its entry.", "follow `wmco status`; docs/keys.md"},
		{"PrivateKeyUnusable", "", "The Secret cloud-private-key is missing or cannot be used. The keys on the hosts do not change.", "correct the Secret as in the message"},
		{"KubeletsRecent", "", "No kubelet blocks the next minor update of the cluster.", fixNothing},
		{"KubeletsTooOld", "", "Old kubelets block the next update of the cluster.", "resume the MachineConfigPool worker, and let the rollout finish"},
		{"RolledOut", "", "All nodes have their published bundles.", fixNothing},
		{"RollingOut", "", "Nodes are being updated.", fixNothing},
		{"RolloutPaused", "", "The rollout is paused.", "`rollout.paused: false` in windows-machine-config"},
		{"RolloutStopped", "", "Failed nodes have stopped the rollout.", "correct the inputs; then `wmco retry` for the failed nodes"},
		{"RolloutFailed", "", "The operator cannot write what a rollout needs.", "follow the message; it is retried"},
		{"AllNodesUpdated", "", "All hosts are nodes with their bundles.", fixNothing},
		{"Starting", "", "The operator has not seen everything since it started.", "wait some minutes"},
		{"NothingChanges", "", "No node is being changed.", fixNothing},
		{"NothingWrong", "", "Nothing is wrong.", fixNothing},
		{"HostsWait", "", "Hosts wait for an action or for another program. The message names the first.", "follow `wmco status` for each"},
	}
}
