// Package agent is the service that runs on each node. It applies the bundle that the operator publishes for its Node,
// and repairs drift: it restores what differs from the bundle that was applied last.
//
//	Node --desired--> fetch layers --> observe --> allowed? --> apply --confirm--> report --> Node
//	timer ---------------------------> repair, limit logs
//
// It watches its own Node and nothing else, under the node's own identity. A change with a higher impact than permitted
// is reported and not applied. While the API server is unreachable, the agent repairs drift with the contents stored on
// the host. After a start it first tries for ten seconds to read its Node, because a paused node must not be repaired.
package agent
