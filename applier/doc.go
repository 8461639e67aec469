// Package applier brings a host to the state that a bundle describes. It compares observed with desired state and
// writes only differences. It can be interrupted at any byte, and it rolls back when services do not become healthy.
//
//	manifest --.                      .--> nothing to do
//	            plan (pure) --> steps --+--> apply --> verify --> confirm --> ledger
//	observed --'                      '                  '--> roll back
//
// A run decides which phase comes next. Each phase is a type, whose fields are the data that it reads and writes:
//
//	situation     holds the known state of the host, observes the host and computes the plan
//	receiver      stores the contents that arrive
//	executor      does the steps, each of which can be repeated
//	health        waits until the services that were started are healthy
//	confirmation  asks the caller to confirm the run
//	exchange      replaces the program of the agent's own service; a guard restores the old one if the new one fails
//	recording     writes the result of the run to the ledger
//	rollback      restores what the journal lists
//	repairing     repairs drift, entry by entry
//	cleanup       removes everything managed
//	quarantine    moves files of others out of managed paths
//	progress      the events of the run, and its outcome
//
// It reads and changes a host only through the interface Host. It knows neither Windows nor Linux, neither SSH nor
// clusters; the probes of services are data in the bundle. Package plan computes the steps, package records keeps the
// records.
//
// A run takes the manifest of a bundle and a ContentSource. Commands that read stdin pass an *archive.Reader; the node
// agent, which fetches its bundle, passes an *archive.Delivery.
//
// The ledger lists the managed entries. While a run is under way, the journal lists what it replaced. Both are on the host
// below plan.StateFolder, with the contents that a repair needs.
package applier
