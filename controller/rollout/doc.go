// Package rollout decides whose turn it is: values in, values out.
//
//	Nodes and for how long each has been so, bundles that are wanted, policy --PlanSteps--> steps, each one patch of one Node or a drain
//	                                                                                   `--> a line for each node and one for the fleet: what it waits for, and why
//	the same --PredictRollout--> the order, the number of restarts, drains and boots, and how long it takes
//
// It makes no requests and keeps nothing between calls. What it has to know later stands on the Node:
//
//	desired-bundle  (published.DesiredAnnotation)   what is published, and the highest impact that is permitted for exactly that
//	bundle-report   (published.ReportAnnotation)    what the node agent says
//	rollout         (published.RolloutAnnotation)   State: the claim, the last turn, the turns before it, a bundle that failed
//	cordoned-for    (published.CordonAnnotation)    the operator cordoned the node, and uncordons it
//	joining         (published.JoiningAnnotation)   the node is being joined, or removed if it has a version
//	paused          (published.PausedAnnotation)    an administrator keeps the node as it is
//
// The turn of a node depends on the impact of its change, the larger of what the bundles differ in and what its agent reports:
//
//	none           publish                                                             all at once
//	restart        publish and permit                                                  at most MaxParallel
//	drain, reboot  take --> hold --> drain --> publish and permit --> release          at most MaxUnavailable
//
// Canaries come first, for each platform, OS build and kind of bundle. A step is written with the resourceVersion of the Node that
// the decision was made from, so that it is refused if anything about this node has changed.
//
// # Two operators
//
// The Lease lets one operator work; for a moment there may be two, and each may see an older state of the cluster. Take claims a
// place and cordons; only Hold, decided from a view that contains the claim, lets the drain begin, and only if all claims together
// fit. Of two claims, the view that one of them is held from is older than the other claim or contains it. In the first case the
// view of the other claim contains the first, and it is withdrawn. So no clock and no order of resource versions is relied on: the
// time of a claim only chooses which of two withdraws. Views must be snapshots, as lists and a cache of one kind are.
package rollout
