// Package resolvers gives rendered hosts files to containerd's own resolvers, of the version that nodes get and of the
// one that nodes taken over from another operator still run, and asks them where they would look for an image. It is a
// module of its own, because the operator must not link containerd.
//
//	mirror sets --render--> hosts.toml --containerd--> URLs, in order --.
//	     |                                                              >-- the same, or a finding says what differs
//	     '-------- what OpenShift means, written here once more --------'
//
// Real registries, proxies and token servers on loopback addresses show that pulls then do what the lists say. Only the
// choice of the directory depends on the system: package windir is for a test program that runs on Windows.
package resolvers
