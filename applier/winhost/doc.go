// Package winhost is the machine that the program runs on: an applier.Host by the APIs of Windows. It starts no program and
// reads no text that is meant for people, so the language of the machine and the tools on it do not matter.
//
//	files         CreateFile, MoveFileEx: written beside with the access at the creation, flushed, moved into place
//	services      the service control manager; Toolhelp for the processes that a stop leaves behind
//	settings      registry, certificate store, IP helper, DISM API, and COM for the firewall and Defender
//	networks      HNS, by github.com/Microsoft/hnslib as kube-proxy uses it
//
// What Windows documents and no Wine does stands behind small interfaces in files without a build tag: the decisions are
// tested everywhere, with fakes that behave as documented, and only the calls themselves need a Windows. On other systems
// the package has these decisions and no Host.
package winhost
