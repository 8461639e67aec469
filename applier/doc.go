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
//	executor      does the steps, each of which can be done twice
//	health        waits until the services that were started are healthy
//	confirmation  asks the caller whether the run may stay
//	exchange      gives the program's own service another command, while the guard watches
//	recording     what the ledger has of the run
//	rollback      restores what the journal has
//	repairing     repairs drift, entry by entry
//	cleanup       removes everything managed
//	quarantine    sets aside what others have made where our files belong
//	progress      the events of the run, and its outcome
//
// Everything that it does to a host goes through a Host. It knows neither Windows nor Linux, neither SSH nor clusters,
// and nothing of what the services are for: what makes one healthy is data in the bundle. Package plan decides what to
// do, package records keeps what the applier has to remember.
//
// A bundle comes to the engine as its manifest and a ContentSource: a command that reads stdin has an *archive.Reader,
// and the node agent, which has fetched its bundle itself, an *archive.Delivery.
//
// The ledger lists the managed entries. While a run is under way, the journal lists what it replaced. Both are on the host
// below plan.StateFolder, with the contents that a repair needs.
package applier
