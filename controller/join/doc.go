// Package join does over SSH what nodes cannot do for themselves.
//
//	Nodes: the kubelet lives, the node agent is silent --> the host is brought to its bundle over SSH, which starts the agent
//
// It writes to hosts through the applier alone, and keeps nothing between calls but what failed when (workqueue).
package join

import (
	"context"

	"wmco/controller/desired"
)

// Inputs reads what the hosts of the cluster should be.
type Inputs func(context.Context) (*desired.Hosts, error)
