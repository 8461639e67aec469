// Package applier brings a host to the state that a bundle describes. It compares what is there with what is wanted,
// writes only what differs, can be cut at any byte, and puts back what it replaced when the host does not come up.
//
//	manifest --.                      .--> nothing to do
//	            plan (pure) --> steps --+--> apply --> verify --> confirm --> ledger
//	observed --'                      '                  '--> roll back
//
// Everything that it does to a machine goes through a Host; it knows neither Windows nor Linux, neither SSH nor clusters,
// and nothing of what the services are for: what makes one healthy is data in the bundle.
//
// It remembers what it owns in the ledger and, while something is under way, what it replaced in the journal. Both live
// on the host below StateFolder, with the contents that a repair needs.
package applier
