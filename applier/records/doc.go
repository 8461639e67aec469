// Package records keeps what the applier has to remember on a host: the ledger of managed entries, the journal of the
// run that is under way, the store of contents, and the cache of file digests. It reads and writes them through the
// files of a host and decides nothing.
package records
