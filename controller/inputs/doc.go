// Package inputs reads the inputs of the operator, once for concurrent callers.
//
//	cache, resolver, records, keys --Reader--> desired.Hosts --base.Coalesced--> publish, join
package inputs
