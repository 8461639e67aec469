// Package inputs reads what the operator works from, once for all who ask at the same time.
//
//	cache, resolver, records, keys --Reader--> desired.Hosts --base.Coalesced--> publish, join
package inputs
