// Package applier brings a host to the state that a bundle describes. It compares observed with desired state and
// writes only differences. It can be interrupted at any byte, and it rolls back when services do not become healthy.
//
//	manifest --.                      .--> nothing to do
//	            plan (pure) --> steps --+--> apply --> verify --> confirm --> ledger
//	observed --'                      '                  '--> roll back
//
// A run decides which phase comes next. Each phase is a type that has what it reads and writes:
//
//	situation     the known state of the host: records, facts; observes it and makes the plan
//	receiver      stores the contents that arrive
//	executor      does the steps, each of which can be repeated
//	health        waits until the services that were started are healthy
//	confirmation  asks the caller to confirm the run
//	exchange      gives the program's own service another command, while the guard watches
//	recording     what the ledger has of the run
//	rollback      restores what the journal has
//	repairing     repairs drift, entry by entry
//	cleanup       removes everything managed
//	quarantine    sets aside what others have made where our files belong
//	progress      the events of the run, and its outcome
//
// It reads and changes a host only through the interface Host. It knows neither Windows nor Linux, neither SSH nor
// clusters; the probes of services are data in the bundle. Package plan computes the steps, package records keeps the
// records.
//
// A bundle comes to the engine as its manifest and a ContentSource: a command that reads stdin has an *archive.Reader,
// and the node agent, which has fetched its bundle itself, an *archive.Delivery.
//
// The ledger lists the managed entries. While a run is under way, the journal lists what it replaced. Both are on the host
// below plan.StateFolder, with the contents that a repair needs.
package applier
