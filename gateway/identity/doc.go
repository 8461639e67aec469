// Package identity makes the certificates with which the gateway of a node and containerd know each other, and makes new ones before they end. The key
// of the CA that signs them is kept nowhere, so nothing else can be signed.
package identity
