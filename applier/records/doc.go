// Package records reads and writes the applier's records on a host: the ledger of managed entries, the journal of the
// current run, the store of contents, and the cache of file digests. It uses the files of a host and decides nothing.
package records
