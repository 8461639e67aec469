package record

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Set is all records of a cluster. It is not changed after NewSet. The zero value has none.
type Set struct {
	byID map[ID]Record
	// byNode are the IDs of the hosts that are recorded as each Node, by its name.
	byNode map[string][]ID
	// byAddress are the IDs of hosts by their addresses.
	byAddress map[string]ID
}

// NewSet returns the set of these records.
func NewSet(records ...Record) Set {
	s := Set{byID: map[ID]Record{}, byNode: map[string][]ID{}, byAddress: map[string]ID{}}
	for _, r := range records {
		s.byID[r.ID()] = r
	}
	for _, id := range s.IDs() {
		s.byAddress[s.byID[id].Address] = id
		if node := s.byID[id].Node; node != "" {
			s.byNode[node] = append(s.byNode[node], id)
		}
	}
	return s
}

// IDs returns the IDs of all records, sorted.
func (s Set) IDs() []ID { return slices.Sorted(maps.Keys(s.byID)) }

// RecordByID returns the record of a host.
func (s Set) RecordByID(id ID) (Record, bool) {
	r, ok := s.byID[id]
	return r, ok
}

// OfNode returns the host that is a Node object. A Node with two recorded hosts is none's.
func (s Set) OfNode(name string, uid types.UID) (Record, bool) {
	if r, ok := s.RecordOfNode(name); ok && r.IsNode(name, uid) {
		return r, true
	}
	return Record{}, false
}

// RecordOfNode returns the host that is, or was, the Node of a name: its Node object may have been deleted since. A
// name that two hosts have is none's.
func (s Set) RecordOfNode(node string) (Record, bool) {
	ids := s.byNode[node]
	if len(ids) != 1 {
		return Record{}, false
	}
	return s.byID[ids[0]], true
}

// RecordAtAddress returns the host that was reached last at an address.
func (s Set) RecordAtAddress(address string) (Record, bool) {
	id, ok := s.byAddress[address]
	return s.byID[id], ok && address != ""
}

// OtherRecords returns the records of other hosts that are, or were, the Node of a name, sorted by ID.
func (s Set) OtherRecords(node string, than ID) []Record {
	var list []Record
	for _, id := range s.byNode[node] {
		if id != than {
			list = append(list, s.byID[id])
		}
	}
	return list
}
