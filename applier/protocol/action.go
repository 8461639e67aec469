package protocol

import (
	"wmco/bundle"
)

// Missing is a content that a host lacks.
type Missing struct {
	Digest bundle.Digest `json:"digest"`
	// Parts are the numbers of the parts (archive.Parts) that have arrived already, of a content whose transfer was
	// interrupted.
	Parts []int `json:"parts,omitempty"`
}

// Verb is what an action does.
type Verb string

// What actions do, roughly in the order of a plan.
const (
	VerbClear  Verb = "clear"  // remove state that belongs to another cluster
	VerbMake   Verb = "make"   // make a folder, or give it its access
	VerbSet    Verb = "set"    // make a setting of the machine what it should be
	VerbUnset  Verb = "unset"  // take a setting away
	VerbWrite  Verb = "write"  // write a file
	VerbStop   Verb = "stop"   // stop a service
	VerbPut    Verb = "put"    // create or configure a service
	VerbDelete Verb = "delete" // delete a service
	VerbRemove Verb = "remove" // remove a file or folder
	VerbStart  Verb = "start"  // start a service
)

// Reason is why an action is in a plan.
type Reason string

const (
	// ReasonAbsent means that the entry is wanted and does not exist.
	ReasonAbsent Reason = "absent"
	// ReasonDiffers means that contents or settings differ.
	ReasonDiffers Reason = "differs"
	// ReasonAccess means that the contents are right and their access is not.
	ReasonAccess Reason = "access"
	// ReasonUnwanted means that the entry is managed and no longer wanted.
	ReasonUnwanted Reason = "unwanted"
	// ReasonUnknown means that a file is in a folder that holds nothing but what the bundle names.
	ReasonUnknown Reason = "unknown"
	// ReasonStale means that it belongs to another cluster.
	ReasonStale Reason = "stale"
	// ReasonNotRunning means that a service should run.
	ReasonNotRunning Reason = "not running"
	// ReasonRestart means that a service reads something that changes.
	ReasonRestart Reason = "restart"
	// ReasonDependency means that a service depends on one that stops.
	ReasonDependency Reason = "dependency"
	// ReasonInWay means that something of another kind is at the path.
	ReasonInWay Reason = "in the way"
)

// Action is one step of a plan.
type Action struct {
	Verb   Verb           `json:"verb"`
	Entry  bundle.EntryID `json:"entry"`
	Reason Reason         `json:"reason"`
	Impact bundle.Impact  `json:"impact"`
	// Size is how many bytes are written.
	Size int64 `json:"size,omitempty"`
}
