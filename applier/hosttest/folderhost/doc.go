// Package folderhost is a whole Windows machine under one folder of this one, for demonstrations and tests: its drive, and
// a simulated service control manager and settings that outlive every process. It runs none of the programs that are
// installed on it, never leaves its folder, and never follows a link.
//
//	root/C/k/kubelet.conf            the file C:\k\kubelet.conf; names are compared without regard to case
//	root/.machine/machine.json       name, boots, what is pending
//	             /facts.json         bundle.Facts, without what the rest tells
//	             /services/*.json    configuration and status, one file per service
//	             /variables.json     and the other settings, one file per kind
//	             /certificates/*.der LocalMachine\Root
//	             /behaviour.json     simulation.Script: what does not go well; may be edited at any time
//	             /lock               held with flock, and who holds it
//
// A file for administrators has mode 0600, one for users 0644, folders 0700 and 0755. Each of these files is replaced
// whole, so that a process that is killed leaves the old or the new one. A program whose service runs cannot be replaced in
// place, as on Windows: the old one is moved aside.
//
// A behaviour.json in which kubelet does not start with a configuration, and answers only with another one:
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
