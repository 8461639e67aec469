// Package agent is what the node agent does while it runs as a service: it keeps its host in the state of the bundle
// that was applied last, and follows the bundle that the cluster publishes for its Node.
//
//	Node --desired--> fetch layers --> observe --> allowed? --> apply --confirm--> report --> Node
//	timer ---------------------------> repair, limit logs
//
// It watches its own Node and nothing else, under the node's own identity. It decides nothing about the bundle: what
// costs more than is allowed is reported and not done. While the API server is away it repairs from what the host
// keeps; after its start it first waits ten seconds for the Node, which may be paused.
package agent
