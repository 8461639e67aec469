// Package inspect reads facts of Windows that decide whether the host can become a node: edition, update, policies,
// pending boots, ports. It changes nothing; a port is asked for by listening on it for a moment.
package inspect
