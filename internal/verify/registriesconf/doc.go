// Package registriesconf compares render/mirrors with the code with which OpenShift configures its Linux nodes:
// openshift/runtime-utils, which the machine-config-operator calls for registries.conf. It is a module of its own,
// because the operator must not link it.
//
//	bytes --generator--> mirror sets --+--> EditRegistriesConfig --> entries of registries.conf --+--> equal
//	                                   +--> mirrors.Merge --> chains -----------------------------+
//	                                   +--> the machine-config-operator's rules --> refused? -----+--> equal
//	                                   +--> mirrors.Build --> findings of severity error ---------+
//
// Hosts files are not part of it: package resolvers tests what containerd does with the chains.
package registriesconf
