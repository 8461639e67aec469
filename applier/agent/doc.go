// Package agent is the node agent as a service: it keeps its host in the state of the bundle that was applied last, and
// follows the bundle that the cluster publishes for its Node.
//
//	Node --desired--> fetch layers --> observe --> allowed? --> apply --confirm--> report --> Node
//	timer ---------------------------> repair, limit logs
//
// It watches its own Node and nothing else, under the node's own identity. A change with a higher impact than permitted
// is reported and not applied. While the API server is unreachable it repairs drift from the contents on the host; after
// its start it first waits ten seconds for the Node, which may be paused.
package agent
