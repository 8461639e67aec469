// Package inspect reads what Windows says of itself before the host can become a node: edition, update, policies, pending boots, ports. It
// changes nothing; a port is asked for by listening on it for a moment.
package inspect
