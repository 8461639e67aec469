// Package status reads and writes the WindowsNodesStatus, in which the operator reports about all Windows nodes: one object in its
// namespace, which has a status and nothing else.
//
//	reconcilers --Writer--> conditions, counts of nodes, refused nodes --> oc get windowsnodesstatus, wmco status
//
// Configuration is a ConfigMap. The operator works where the cluster does not serve the kind.
package status
