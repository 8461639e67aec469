// Package simnode is simulated Windows machines that join a real control plane, or an API server in memory: many in one process.
//
//	Machine: host in memory or in a folder (internal/hostsim) with its service control manager
//	           |-- kubelet              package kubelet, while the service runs
//	           |-- hybrid-overlay-node  package overlay, while the service runs
//	           |-- the node agent       applier/agent with the real engine on this host, while the service runs
//	           '-- [SSH server]         real sshd, to which the real wmco-node is uploaded (internal/test/sshtest/sshd), or memoryssh
//
// A program runs exactly while it runs by the service control manager of the host, with the command line and the files
// that the bundle has put there. Who changes the host does not matter: the agent in this process, or wmco-node over
// SSH. Package cluster has what a real cluster has around the machines: approvers, the cluster network, and objects
// that lead to the test's API server.
//
// Simplified, besides the simplifications of the packages simulation, kubelet and overlay:
//   - containerd, kube-proxy, csi-proxy, windows_exporter and cloud-node-manager do nothing: their services run, and their probes
//     succeed unless the Script of the host has a fault.
//   - Services read their configuration when they start. Files that are read on use, such as the hosts files of containerd, are not read.
//   - The agent logs to Options.Log, not to the folder of its command line, and it is this process's code whatever executable was
//     uploaded. Over SSH the uploaded executable runs.
//   - A boot takes Times.Boot. SSH connections end with it when the machine boots itself; `wmco-node apply --reboot` over SSH boots
//     the host at once and keeps its connection.
//   - The clock of a machine differs from that of the system by the value of SetClock. TLS goes by the system's.
//   - Programs that run in this process are no files: replacing their executable never needs to move it aside because of them, as the
//     simulated processes of the host do that.
package simnode
