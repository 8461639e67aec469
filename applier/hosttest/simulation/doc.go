// Package simulation is a Windows machine without its files: a service control manager, settings and health that behave as
// Windows documents, for hosts that are none. What goes wrong on it is written in a Script. It never runs a program, never
// reads a clock of its own, and keeps nothing: where the State lives is the host's matter, one Save for each step, so that
// a cut leaves what a cut leaves on a machine.
//
//	host's operation --> Machine --Load--> State --change--> Save
//	                       '--asks--> Files (is the program there, what does the configuration say)
package simulation
