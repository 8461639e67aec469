package reason

// fixNothing is for what goes on by itself.
const fixNothing = "nothing: it goes on by itself"

// hostStatus are the reasons of hosts that join or are removed.
func hostStatus() []Entry {
	return []Entry{
		{"Joined", "", "The host is a node with its bundle.", fixNothing},
		{"Joining", "", "The operator makes the host a node, and nothing is wrong. The status has the step.", fixNothing},
		{"Unreachable", "", "There is no connection to the host or, in a rollout, the node does not answer.", "check the address, the firewall and that the host runs; it is tried again every 15 s"},
		{"HostSilent", "", "The host accepts the login, and a command or a file transfer on it does not end.", "run a command on it over SSH; restart the service sshd, or the host"},
		{"LoginRefused", "", "The host does not accept the key. A Machine whose host refuses it for 30 minutes is replaced.", "of an instance, add the public key on the host"},
		{"HostKeyChanged", "", "The host has another key than the pinned one.", "if the host was installed again, run the command that the message has"},
		{"RolledBack", "", "A service did not become healthy, or the change could not be made, so the host has what it had before. The message says why, and has the last lines of the service's log.", "correct the inputs, or what the message names; then `wmco retry NODE`"},
		{"Rebooting", "", "The host boots, since its computer name or a Windows feature takes effect so.", fixNothing},
		{"WaitingForNode", "", "The kubelet runs, and its Node is not there yet.", "nothing for some minutes; then the log of the kubelet under C:\\var\\log on the host"},
		{"Completing", "", "The Node is there, and its complete bundle is applied.", fixNothing},
		{"SameHost", "", "Two entries are one host, two Machines have one address, or the host is a node by another entry or Machine. Nothing is changed on it.", "remove the entry that the message names, or the Machine that has no instance in the cloud"},
		{"NodeNameTaken", "", "The host would register as a Node that exists and is another host.", "rename the computer, or delete the Node if it is what is left of this host"},
		{"NotTheHost", "", "The host says that it is another Node than the one of its record. Nothing is changed on it.", "check which host has the address; if the computer was renamed, give it its name back"},
		{"AddressNotOnHost", "", "The entry is an address that the host does not have, as behind a translation of addresses: its kubelet cannot announce it. Nothing is changed on the host.", "write the address that the host has in the network of the cluster"},
		{"OtherRun", "", "Another run is changing the host, or another process uploads the node agent: that of another operator, of `wmco apply` or of the host's own agent. The message quotes it.", "wait; if it does not end, end its process on the host. A run that waits for its confirmation is confirmed"},
		{"APIServerError", "", "The API server gives no answer, or an error of its own. Nothing is wrong with the host.", "nothing for the host: it is tried again every five seconds"},
		{"JoinFailed", "", "Something failed that has no reason of its own. The message says what.", "what the message says; it is tried again"},
		{"CertificateExpired", "", "The certificate of the kubelet has expired.", "of a Machine, delete the Machine; an instance joins again by itself"},
		{"MachineTooOld", "", "The host of the Machine could not join within two hours, and the cluster approves no first certificate for it any more.", "delete the Machine"},
		{"InstanceRejoins", "", "The certificate of an instance's kubelet has expired, so the host joins again as a new node.", fixNothing},
		{"CopyingExecutables", "", "Executables of its next bundle are copied to the host of a node. The status has the step.", fixNothing},
		{"RepairingAgent", "", "The node agent did not report, and is repaired over SSH. The status has the step.", fixNothing},
		{"CleaningUp", "", "The host is removed: what is managed there is taken away. The status has the step.", fixNothing},
		{"DrainBlocked", "", "Pods of the node do not end, mostly because a PodDisruptionBudget allows no disruption, or because an admission webhook or policy denies their eviction. The message names both.", "scale the workload up, or move its pods; the drain is tried again"},
		{"RemovalNotConfirmed", "", "The host has no entry any more because the whole list is empty or was deleted, which is more often a mistake.", "restore the entry, or run the command that the message has"},
	}
}

// nodeStatus are the reasons of nodes, and of their places in rollouts.
func nodeStatus() []Entry {
	return []Entry{
		{"Applied", "", "The node has what it was told.", fixNothing},
		{"Applying", "", "The bundle is being applied, or waits for its confirmation.", fixNothing},
		{"NeedsPermission", "", "The change costs more than is allowed, such as a reboot. Nothing was changed.", "nothing: the operator drains the node first"},
		{"PayloadMissing", "", "An executable is not on the host. Nothing was changed.", "nothing: the operator copies it; by hand, `wmco apply --host` with `--payload`"},
		{"DiskFull", "", "Drive C: has no room for the bundle, so the node has what it had before. The message says how much is missing.", "free space on it: images that no container uses, logs; it is tried again within a minute of room"},
		{"RebootPending", "", "The rest of the bundle takes effect with the next boot.", "`wmco reboot NODE`"},
		{"Failed", "", "The bundle cannot be fetched, read or applied, or the node failed in its turn. It is tried again, less and less often.", "what `wmco status NODE` says"},
		{"Unpublished", "", "Nothing is published for the node yet.", "nothing for some seconds; then the conditions Published and InputsAccepted"},
		{"WaitingForAdoption", "", "The host is a node of the existing operator.", "`wmco adopt NODE`: docs/takeover.md"},
		{"Adopting", "", "The host was asked what adopting it changes, and waits for its turn.", fixNothing},
		{"NewerOperator", "", "What is published for the node has a form of a newer operator.", "leave the annotation alone, and use the wmco of the operator's version"},
		{"Updated", "", "The node has the wanted bundle.", fixNothing},
		{"Step", "", "The bundle of the node is published now.", fixNothing},
		{"Settling", "", "The node is a canary, has the new bundle, and is observed for `rollout.settle`.", fixNothing},
		{"WaitingForCanary", "", "The node waits until the canaries have the new bundle and work with it.", fixNothing},
		{"WaitingForWindow", "", "The change of the node waits until a window of `rollout.windows` opens. The message says when.", "nothing; or change `rollout.windows` in windows-machine-config"},
		{"WaitingForAvailability", "", "As many nodes are unavailable as `rollout.maxUnavailable` allows.", "nothing; the other nodes that are not Ready hold its place: `wmco status`"},
		{"WaitingForParallel", "", "As many nodes restart services as `rollout.maxParallel` allows.", fixNothing},
		{"Paused", "", "The node or the rollout is paused.", "`wmco resume NODE`, or `rollout.paused: false` in windows-machine-config"},
		{"Stopped", "", "Failed nodes have stopped the rollout. The message names them.", "correct the inputs; then `wmco retry` for the nodes that failed"},
		{"PayloadPending", "", "Executables are on their way to the host.", fixNothing},
		{"WaitingForRoom", "", "The disk of the host is full.", "free space on drive C:; it goes on by itself"},
		{"Leaving", "", "The node is about to go: its Machine is deleted, or its host is removed.", fixNothing},
		{"NoBundle", "", "No bundle is rendered for the node.", "the findings of the node: `wmco status NODE`"},
	}
}

// conditionReasons are the reasons of the conditions of WindowsNodesStatus.
func conditionReasons() []Entry {
	return []Entry{
		{"Accepted", "", "The inputs are accepted.", fixNothing},
		{"NodesRefused", "", "The inputs of some nodes are refused. They keep what is published; the others get what is new.", "correct the inputs that `wmco status` names"},
		{"Published", "", "What nodes should have is published.", fixNothing},
		{"InputsRefused", "", "The inputs are refused, and what is published stays.", "correct them: the message has the first finding, `wmco validate --from cluster` all"},
		{"PublishFailed", "", "Layers cannot be written to the cluster.", "what the message says; it is tried again"},
		{"Present", "", "No input was deleted.", fixNothing},
		{"InputsDeleted", "", "An input was deleted that nodes depend on. What is published stays until that is confirmed.", "restore the object, or `wmco confirm --all --input INPUT`"},
		{"NothingHeld", "", "No change is held.", fixNothing},
		{"NoWarnings", "", "The inputs have no warnings.", fixNothing},
		{"InputsWarned", "", "The inputs are accepted, and something is not as they ask for.", "`wmco validate --from cluster` has the findings"},
		{"Reached", "", "Urgent inputs have reached all nodes.", fixNothing},
		{"UrgentInputsHeld", "", "An urgent input, such as a new CA, cannot reach some nodes.", "the nodes that the message names: `wmco status NODE`"},
		{"ClocksAgree", "", "The clocks of nodes and API servers agree.", fixNothing},
		{"ClockSkew", "", "The clock of a host differs from that of the API servers.", "set it: w32tm /resync on the host"},
		{"HostNetworksStable", "", "No Host Network Service of a node crashes again and again.", fixNothing},
		{"HostNetworkUnstable", "", "The Host Network Service of a node crashes more often than kube-proxy is restarted for it, so Services may fail there.", "install the updates of Windows, or `wmco reboot NODE`"},
		{"SSHServersRun", "", "No OpenSSH server of a node is known to be stopped.", fixNothing},
		{"SSHServerStopped", "", "The OpenSSH server of a node does not run, and the node agent cannot start it. Pods are not affected; the operator cannot log in to upgrade, repair or remove the node.", "`oc describe node NODE` has the error; docs/runbooks/WindowsSSHServerStopped.md"},
		{"NoRebootPending", "", "No Windows waits for a boot.", fixNothing},
		{"WindowsRebootPending", "", "Windows itself waits for a boot of a node, such as after its updates.", "`wmco reboot NODE`, or `windowsReboots: Coordinate` in windows-machine-config"},
		{"NamespaceNotMonitored", "", "Cluster monitoring does not scrape the operator's namespace.", "the command in the message, which sets the label"},
		{"InstalledElsewhere", "", "The operator is installed in another namespace than the recommended one, which what is shipped for Prometheus names.", "install it in openshift-windows-machine-config-operator; everything but metrics and alerts works elsewhere too"},
		{"NamespaceNotReadable", "", "The operator may not read its namespace, so it is not known whether that is monitored.", "apply deploy/rbac/operator.yaml"},
		{"KeysAccepted", "", "The operator has logged in to the host of each node with the key of the Secret cloud-private-key.", fixNothing},
		{"KeysChanging", "", "Hosts get another key of the operator, and accept the earlier one too until it has logged in with the new one.", "nothing; hosts that are off get it when they are back"},
		{"KeyNotAccepted", "", "The operator cannot log in to the host of a node with its key, or with the account of its entry.", "what the message says for the first node, `wmco status` for each; docs/keys.md"},
		{"PrivateKeyUnusable", "", "The Secret cloud-private-key is missing or cannot be used. The keys on the hosts stay as they are.", "correct the Secret as the message says"},
		{"KubeletsRecent", "", "No kubelet keeps the cluster from its next minor update.", fixNothing},
		{"KubeletsTooOld", "", "Kubelets are so old that the cluster cannot be updated.", "resume the MachineConfigPool worker, and let the rollout end"},
		{"RolledOut", "", "All nodes have what is published.", fixNothing},
		{"RollingOut", "", "Nodes are being changed.", fixNothing},
		{"RolloutPaused", "", "The rollout is paused.", "`rollout.paused: false` in windows-machine-config"},
		{"RolloutStopped", "", "Failed nodes have stopped the rollout.", "correct the inputs; then `wmco retry` for the nodes that failed"},
		{"RolloutFailed", "", "The operator cannot write what a rollout needs.", "what the message says; it is tried again"},
		{"AllNodesUpdated", "", "All hosts are nodes with their bundle.", fixNothing},
		{"Starting", "", "The operator has not seen everything since it started.", "nothing for some minutes"},
		{"NothingChanges", "", "No node is being changed.", fixNothing},
		{"NothingWrong", "", "Nothing is wrong.", fixNothing},
		{"HostsWait", "", "Hosts wait for an action or for another program. The message names the first.", "what `wmco status` says for each"},
	}
}
