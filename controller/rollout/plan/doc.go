// Package plan decides which nodes get a slot or an update next: values in, values out.
//
//	Nodes, durations of their states, wanted bundles, policy --NextSteps--> steps, each one patch of one Node or a drain
//	                                                                   `--> a line for each node and one for the fleet: what it waits for, and why
//	the same --PredictRollout--> the order, the number of restarts, drains and boots, and how long it takes
//
// It makes no requests and keeps nothing between calls. Its memory is on the Node:
//
//	desired-bundle  (published.DesiredAnnotation)   the published bundle, and the highest impact that is permitted for exactly that
//	bundle-report   (published.ReportAnnotation)    the report of the node agent
//	rollout         (published.RolloutAnnotation)   State: the slot, the last turn, the turns before it, a bundle that failed
//	cordoned-for    (published.CordonAnnotation)    the operator cordoned the node, and uncordons it
//	joining         (published.JoiningAnnotation)   the node is being joined, or removed if it has a version
//	paused          (published.PausedAnnotation)    an administrator keeps the node as it is
//
// The turn of a node depends on the impact of its change: that of the difference between its bundles, or that which its
// agent reports, whichever is larger.
//
//	none           publish                                                             all at once
//	restart        publish and permit                                                  at most MaxParallel
//	drain, reboot  take --> hold --> drain --> publish and permit --> release          at most MaxUnavailable
//
// Canaries come first, for each platform, OS build and kind of bundle. A step is written with the resourceVersion of
// the Node that the decision was made from, so that it is refused if anything about this node has changed.
//
// Each decision about a node is a rule: a sentence in a table that is read from the top (rules.go lists the tables).
// evaluateNode evaluates one node alone, newPlanner all of them, and then the rules decide about one node after the other.
//
// # Two operators
//
// The Lease lets one operator work; for a moment there may be two, and each may see an older state of the cluster.
// ActionReserve (take) reserves a slot among the unavailable nodes and cordons; only ActionConfirmReservation (hold),
// decided from a view that contains the reservation, lets the drain begin, and only if all reservations together fit.
// Of two reservations, the view from which one is confirmed either contains the other or is older than it. If it is
// older, the view of the other contains the first, and the other is canceled. So no clock and no order of resource
// versions is needed: the time of a reservation only chooses which of two is canceled. Views must be snapshots, as
// lists and a cache of one kind are.
package plan
