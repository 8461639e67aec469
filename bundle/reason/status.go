package reason

// fixNothing is for states that need no action.
const fixNothing = "no action needed"

// hostStatus are the reasons of hosts that join or are removed.
func hostStatus() []Entry {
	return []Entry{
		{"Joined", "", "The host is a node with its bundle.", fixNothing},
		{"Joining", "", "The host is joining. `wmco status` shows the current step.", fixNothing},
		{"Unreachable", "", "The host, or in a rollout its node, cannot be reached.", "check that the host is up, its address and the firewall; the operator retries every 15 seconds"},
		{"HostSilent", "", "The host accepts the login, but a command or file transfer on it does not end.", "run a command on it over SSH; restart the service sshd, or the host"},
		{"LoginRefused", "", "The host rejects the SSH key of the Secret cloud-private-key.", "for a host of windows-instances, add the public key to administrators_authorized_keys. A Machine of a MachineSet is replaced after 30 minutes"},
		{"HostKeyChanged", "", "The SSH host key differs from the pinned one.", "if the host was reinstalled, run the command in the message"},
		{"RolledBack", "", "A service did not become healthy or the change failed, so the previous state was restored.", "correct the inputs, which are applied automatically; or fix the host, and run `wmco retry NODE`"},
		{"Rebooting", "", "The host reboots to apply its computer name or a Windows feature.", fixNothing},
		{"WaitingForNode", "", "The kubelet runs, and its Node does not exist yet.", "wait a few minutes; then read the kubelet's log in C:\\var\\log on the host"},
		{"Completing", "", "The Node exists, and its complete bundle is being applied.", fixNothing},
		{"SameHost", "", "Two entries are the same host, two Machines have the same address, or the host is already another node. Nothing is changed on it.", "remove the entry in the message, or the Machine whose virtual machine no longer exists"},
		{"NodeNameTaken", "", "The host would register with the name of a Node that belongs to another host.", "rename the computer, or delete the Node if this host left it behind"},
		{"NotTheHost", "", "The operator has recorded another Node name than the host reports. Nothing is changed on it.", "check which host has the address; if the computer was renamed, restore its name"},
		{"AddressNotOnHost", "", "The host does not have the address of its entry, for example behind NAT. Nothing is changed on it.", "use the host's own address in the cluster's network"},
		{"OtherRun", "", "Another process is changing the host or uploading the node agent: an operator, `wmco apply` or the host's agent.", "wait; if that process (in the message) hangs, end it on the host"},
		{"APIServerError", "", "The API server does not respond, or responds with an error. The host is not the cause.", "none; the operator retries every five seconds. If it persists, check the API server"},
		{"ExecutablesNotFetched", "", "The host cannot fetch executables of the operator's image. It is retried; with `executables.from: Any` the operator sends them over SSH.", "correct the cause in the message, such as a missing mirror, password, proxy or CA"},
		{"JoinFailed", "", "The join failed.", "correct the cause in the message; the operator retries"},
		{"CertificateExpired", "", "The certificate of the kubelet has expired.", "for a Machine, delete the Machine. A host of windows-instances joins again automatically"},
		{"MachineTooOld", "", "The host of the Machine could not join within two hours, and the cluster no longer approves a first certificate for it.", "delete the Machine"},
		{"InstanceRejoins", "", "The kubelet certificate of a host of windows-instances has expired, so the host joins again as a new node.", fixNothing},
		{"CopyingExecutables", "", "Executables of the newest bundle are being copied to the host.", fixNothing},
		{"RepairingAgent", "", "The silent node agent is being repaired over SSH.", fixNothing},
		{"CleaningUp", "", "Everything managed on the host is being deleted.", fixNothing},
		{"DrainBlocked", "", "Pods of the node do not terminate, mostly because of a PodDisruptionBudget, an admission webhook or a policy.", "scale the workload up, or move its Pods; the operator retries the drain"},
		{"RemovalNotConfirmed", "", "The host has no entry, because the whole ConfigMap windows-instances is empty or deleted.", "restore the entry, or run the command in the message"},
	}
}

// nodeStatus are the reasons of nodes, and of their places in rollouts.
func nodeStatus() []Entry {
	return []Entry{
		{"Applied", "", "The published bundle is applied.", fixNothing},
		{"Applying", "", "The node agent is applying the bundle, or is waiting up to five minutes for the Node to be Ready again.", fixNothing},
		{"NeedsPermission", "", "The change has a higher impact than is permitted now. Nothing was changed.", "none; the operator permits the change when it is the node's turn, after a drain if needed"},
		{"PayloadMissing", "", "An executable is not on the host. Nothing was changed.", "none; the node fetches it, or the operator copies it. To copy it yourself: `wmco apply --host` with `--payload`"},
		{"DiskFull", "", "Drive C: has no space for the bundle, so the previous state was restored.", "free space on drive C:, for example unused images and logs; the node agent retries within a minute"},
		{"RebootPending", "", "Some entries of the bundle take effect only after a reboot.", "`wmco reboot NODE`"},
		{"Failed", "", "The bundle cannot be fetched, read or applied, or the node failed in the rollout. The node agent retries with a growing delay.", "apply the fix that `wmco status NODE` prints"},
		{"Unpublished", "", "No bundle is published for the node yet.", "wait a few seconds; then check the conditions Published and InputsAccepted"},
		{"WaitingForAdoption", "", "The host is a node of the existing operator, and gets no changes.", "`wmco adopt NODE` (docs/takeover.md)"},
		{"Adopting", "", "The operator has examined the host, and the node waits for a slot to be adopted.", fixNothing},
		{"NewerOperator", "", "A newer operator has published the bundle of the node.", "use a wmco of its version; do not edit the annotation `desired-bundle` of the Node"},
		{"Updated", "", "The node has the newest bundle.", fixNothing},
		{"Step", "", "The operator is working on the node: taking a slot, draining it, publishing its bundle, or releasing it.", fixNothing},
		{"Settling", "", "The node is a canary. It has the new bundle and must stay healthy for `rollout.settle`.", fixNothing},
		{"WaitingForCanary", "", "The node waits until the canaries are healthy with the new bundle.", fixNothing},
		{"WaitingForWindow", "", "The node waits for a maintenance window (`rollout.windows`), at the time in the message.", "wait, or change `rollout.windows`"},
		{"WaitingForAvailability", "", "As many nodes are unavailable as `rollout.maxUnavailable` allows.", "wait, or repair nodes that stay not Ready (`wmco status` lists them)"},
		{"WaitingForParallel", "", "Services are restarting on as many nodes as `rollout.maxParallel` allows.", fixNothing},
		{"Paused", "", "The node or the rollout is paused.", "`wmco resume NODE`, or `rollout.paused: false` in windows-machine-config"},
		{"Stopped", "", "Failed nodes, which the message names, have stopped the rollout.", "correct the inputs, which are applied automatically; or fix the hosts, and run `wmco retry` for these nodes"},
		{"PayloadPending", "", "Executables are being copied to the host.", fixNothing},
		{"WaitingForRoom", "", "The host's disk is full, so the rollout waits with this node.", "free space on drive C:, for example unused images and logs; the rollout then continues"},
		{"Leaving", "", "The node is being removed, with its Machine or its entry in windows-instances.", fixNothing},
		{"NoBundle", "", "No bundle is rendered for the node.", "adopt the node if it waits for adoption; otherwise correct the findings that `wmco status NODE` prints"},
	}
}

// conditionReasons are the reasons of the conditions of WindowsNodesStatus.
func conditionReasons() []Entry {
	return []Entry{
		{"Accepted", "", "The inputs are accepted.", fixNothing},
		{"NodesRefused", "", "The inputs of some nodes are refused. These keep their published bundles.", "correct the inputs that `wmco status` names"},
		{"Published", "", "The bundles of all nodes are published.", fixNothing},
		{"InputsRefused", "", "The inputs are refused; all nodes keep their published bundles.", "correct the inputs: `wmco validate --from cluster` lists all findings"},
		{"PublishFailed", "", "The operator cannot write layers (Secrets) to the cluster.", "correct the cause in the message; the operator retries"},
		{"Present", "", "No input was deleted.", fixNothing},
		{"InputsDeleted", "", "An input of existing nodes was deleted. They keep their published bundles until you confirm the deletion.", "restore the object, or `wmco confirm --all --input INPUT`"},
		{"NothingHeld", "", "No change is held.", fixNothing},
		{"NoWarnings", "", "The inputs have no warnings.", fixNothing},
		{"InputsWarned", "", "The inputs are valid, but Windows nodes cannot apply all of them exactly.", "`wmco validate --from cluster` lists the differences"},
		{"Reached", "", "Urgent inputs have reached all nodes.", fixNothing},
		{"UrgentInputsHeld", "", "An urgent input, such as a new CA, cannot reach some nodes.", "run `wmco status NODE` for these nodes"},
		{"ClocksAgree", "", "The clocks of nodes agree with the operator's.", fixNothing},
		{"ClockSkew", "", "The clock of a node or of a new host differs from the operator's by more than five minutes.", "run `w32tm /resync` on the host; if all nodes are listed, correct the clock of the operator's own node"},
		{"HostNetworksStable", "", "The Host Network Service is stable on all nodes.", fixNothing},
		{"HostNetworkUnstable", "", "The Host Network Service of a node crashes repeatedly, so Services may fail there.", "install Windows updates, or run `wmco reboot NODE`"},
		{"SSHServersRun", "", "The OpenSSH server runs on all nodes.", fixNothing},
		{"SSHServerStopped", "", "The OpenSSH server of a node does not run, and the node agent cannot start it. Pods are not affected, but the operator cannot log in.", "`oc describe node NODE` has the error; docs/runbooks/WindowsSSHServerStopped.md"},
		{"ImagesReachable", "", "No image gateway reports a registry whose images it cannot get.", fixNothing},
		{"ImagesUnreachable", "", "For ten minutes or more, a node could reach no mirror of a registry, nor the registry itself (or a policy forbids to contact it). Pods that need its images do not start there.", "docs/runbooks/WindowsImagesUnreachable.md"},
		{"NoRebootPending", "", "Windows itself needs no reboot on any node.", fixNothing},
		{"WindowsRebootPending", "", "Windows itself needs a reboot on a node, for example after updates.", "`wmco reboot NODE`, or `windowsReboots: Coordinate` in windows-machine-config"},
		{"NamespaceNotMonitored", "", "Cluster monitoring does not scrape the operator's namespace.", "run the command in the message"},
		{"InstalledElsewhere", "", "The operator is not in the recommended namespace, which the Prometheus objects name.", "install it in openshift-windows-machine-config-operator; only metrics and alerts need that"},
		{"NamespaceNotReadable", "", "The operator may not read its namespace, so it cannot check its monitoring.", "apply deploy/rbac/operator.yaml"},
		{"KeysAccepted", "", "The host of each node accepts the key of the Secret cloud-private-key.", fixNothing},
		{"KeysChanging", "", "Hosts are changing to a new key. They accept the earlier one until the new one is confirmed.", "none; hosts that are off change when they are back"},
		{"KeyNotAccepted", "", "The operator cannot log in to the host of a node with its key or the account of its entry.", "apply the fix that `wmco status` prints (docs/keys.md)"},
		{"PrivateKeyUnusable", "", "The Secret cloud-private-key is missing or invalid. The keys on the hosts do not change.", "correct the Secret as the message describes"},
		{"KubeletsRecent", "", "All kubelets are recent enough for the next minor update of the cluster.", fixNothing},
		{"KubeletsTooOld", "", "Kubelets of Windows nodes are too old for the next minor update of the cluster.", "wait until the rollout is finished; if the MachineConfigPool worker is paused, resume it"},
		{"RolledOut", "", "All nodes have the newest bundles.", fixNothing},
		{"RollingOut", "", "Nodes are being updated.", fixNothing},
		{"RolloutPaused", "", "The rollout is paused.", "`rollout.paused: false` in windows-machine-config"},
		{"RolloutStopped", "", "Failed nodes have stopped the rollout.", "correct the inputs, which are applied automatically; or fix the hosts, and run `wmco retry` for these nodes"},
		{"RolloutFailed", "", "The operator cannot update Nodes or their Secrets.", "correct the cause in the message; the operator retries"},
		{"AllNodesUpdated", "", "All hosts are nodes with the newest bundles.", fixNothing},
		{"Starting", "", "The operator has just started and has not evaluated all conditions yet.", "wait a few minutes"},
		{"NothingChanges", "", "No node is being changed.", fixNothing},
		{"NothingWrong", "", "No problems.", fixNothing},
		{"HostsWait", "", "Hosts wait for you or for another program.", "apply the fix of each host that `wmco status` prints"},
	}
}
