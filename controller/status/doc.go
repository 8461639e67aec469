// Package status is the object in which the operator says how the Windows nodes of a cluster are: one
// WindowsNodesStatus in its namespace, which has a status and nothing else.
//
//	reconcilers --Writer--> conditions, counts of nodes, refused nodes --> oc get windowsnodesstatus, wmco status
//
// Configuration is a ConfigMap. The operator works where the cluster does not serve the kind.
package status
