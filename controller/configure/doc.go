// Package configure makes one host a node over SSH, step by step: one step at each call, and it returns how far the
// host is.
//
//	Machine, entry --Joiner--> first bundle over SSH --> Node --> complete bundle --> node agent
//
// It writes to hosts through the applier alone, and keeps nothing between calls but how far each host was, for people
// (Unjoined). The controllers of Machines, instances and Nodes call it.
package configure

import (
	"context"

	"wmco/controller/inputs/desired"
)

// Inputs reads what the hosts of the cluster should be.
type Inputs func(context.Context) (*desired.Hosts, error)
