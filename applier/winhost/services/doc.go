// Package services is the service control manager of the host: it reads, configures, starts, stops and deletes
// services, and runs a program as a service.
//
//	configuration   the service control manager; the registry for what has no API
//	stop            the service control manager; Toolhelp for the processes that are left
//
// The formats of the registry and the choice of a service's processes are in files without a build tag, and are tested
// on every system.
package services
