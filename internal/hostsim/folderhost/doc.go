// Package folderhost is a simulated Windows host in a folder, for demonstrations and tests: its drive, its services and
// its settings outlive every process. It never runs a program that is installed on it, never leaves its folder, and
// never follows a link.
//
//	root/C/k/kubelet.conf            the file C:\k\kubelet.conf; names are case-insensitive
//	root/.machine/machine.json       host name, boot time, pending reboot
//	             /facts.json         bundle.Facts that do not follow from the other files
//	             /services/*.json    configuration and status, one file per service
//	             /variables.json     and the other settings, one file per kind
//	             /certificates/*.der LocalMachine\Root
//	             /live.json          simulation.Live: what programs that really run say about themselves
//	             /behaviour.json     simulation.Script: what goes wrong; may be edited at any time
//	             /lock               locked with flock; holds the name of the owner
//
// A file for administrators has mode 0600, one for users 0644, folders 0700 and 0755. What another user made has the
// sticky bit: it is that user's. Each file or folder is made under another name and renamed, so that a killed process
// leaves the old or the new one. As on Windows, a running program is moved aside before a new one takes its path.
//
// With this behaviour.json the kubelet exits when its configuration has a certain line, and is healthy only once it has
// a kubeconfig:
//
//	{
//	  "services": {
//	    "kubelet": {
//	      "needs":   [{"file": "C:\\k\\kubelet.conf", "lacks": "maxPods: 9999"}],
//	      "answers": ["http://127.0.0.1:10248/healthz"],
//	      "healthy": [{"file": "C:\\k\\kubeconfig"}]
//	    },
//	    "containerd": {"stop": "hangs"}
//	  },
//	  "probes": [{"target": "127.0.0.1:9182"}],
//	  "locked": ["C:\\k\\csi-proxy.exe"]
//	}
package folderhost
