// Package resolvers tests rendered hosts files with containerd's own resolvers: the version that nodes get, and the one
// that adopted nodes may still run. It compares the places where they look for an image with what OpenShift means. It
// is a module of its own, because the operator must not link containerd.
//
//	mirror sets --render--> hosts.toml --containerd--> URLs, in order --.
//	     |                                                              >-- the same, or a finding has the difference
//	     '-------- what OpenShift means, implemented again   --------'
//
// The credentials of pulls are those that the kubelet's own code takes from rendered files, and registries record what they are given: each gets its own alone.
//
// Pulls from real registries, proxies and token servers on loopback addresses prove the same. Only the choice of the
// directory depends on the system: package windir has its test for Windows.
package resolvers
