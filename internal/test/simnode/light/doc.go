// Package light is simulated Windows nodes for storms with hundreds of them in one process: the real node agent with
// the real engine, on a host in memory, with a client certificate of its own.
//
//	published bundle --watch, fetch--> applier/agent --plan, apply--> internal/hostsim.Memory
//	Node <--report, event-------------------'
//
// What a machine of package simnode has and a light node lacks:
//   - A kubelet. Whoever makes the Node reports it as Ready; its Lease is not renewed, no certificates are approved and no pods run. When the
//     agent looks for a sign of life it asks the API server as always, and takes each answer for a new one.
//   - hybrid-overlay-node. The networks and endpoints of the host are those of Options.Facts.
//   - An SSH server, processes that die; a disk. A restart of the agent by its service is a new agent in this
//     process, and a boot is one too, after Options.Boot. The service that removes everything is a goroutine.
package light
