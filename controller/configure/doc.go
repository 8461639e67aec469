// Package configure makes one host a node over SSH, step by step. Each call does one step and returns the progress.
//
//	Machine, entry --Joiner--> first bundle over SSH --> Node --> complete bundle --> node agent
//
// It writes to hosts through the applier alone. What is done next is read from the Node and the host. In memory it keeps
// progress for the status (Unjoined) and for how long a host has waited (Sightings). The controllers of Machines,
// instances and Nodes call it.
package configure

import (
	"context"

	"wmco/controller/inputs/desired"
)

// Inputs reads what the hosts of the cluster should be.
type Inputs func(context.Context) (*desired.Hosts, error)
