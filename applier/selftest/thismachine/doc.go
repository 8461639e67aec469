// Package thismachine is the local Windows, for selftest.Run. It does to this Windows what other programs do: it holds
// files open, runs services that crash or hang, makes links, networks and folders of other users. Everything is below
// selftest.Root or has a name of the self-test, and Clean removes it, also after a run that was killed.
//
// The services are copies of this program, which act as services that crash or hang when they are started from
// selftest.Root: Play.
package thismachine
