// Package plan computes the steps that bring a host to a bundle. It is pure: values in, values out, no file, clock or
// host.
//
//	bundle --NewTarget, DropUnwanted--> Target --.
//	                                      Make --> Plan: Steps in order, impact, restarts
//	Observed (what the host reports) ----'
//
// Its values are those that hosts report (FileInfo, ServiceState, Setting): observed and planned state have the same
// types.
package plan
