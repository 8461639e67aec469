// Package winhost is the Windows host that the program runs on: an applier.Host that uses the APIs of Windows. It
// starts no program and parses no text that is meant for people, so it does not depend on the language of Windows or on
// its tools.
//
//	files       the files, and the lock
//	services    the service control manager
//	settings    variables, trusted CAs, features, firewall, exclusions, host name
//	networks    routes, and the networks and endpoints of HNS
//	metadata    the name of the host in its cloud
//	hklm, wait  the registry, and waits for what Windows does not report
//
// This package joins them, collects the facts, asks probes and restarts the host. On other systems than Windows it has
// no Host, and the packages below have only what they decide.
package winhost
