package applier

import "wmco/applier/plan"

// Names that have moved to plan; removed once their users name plan.
type (
	FileInfo      = plan.FileInfo
	FileKind      = plan.FileKind
	ServiceConfig = plan.ServiceConfig
	ServiceState  = plan.ServiceState
	ServiceStatus = plan.ServiceStatus
	Setting       = plan.Setting
	Missing       = plan.Missing
	Action        = plan.Action
	Verb          = plan.Verb
	Reason        = plan.Reason
)

const (
	FileAbsent       = plan.FileAbsent
	FileRegular      = plan.FileRegular
	FileDirectory    = plan.FileDirectory
	FileOther        = plan.FileOther
	AccessOther      = plan.AccessOther
	StartManual      = plan.StartManual
	StartDisabled    = plan.StartDisabled
	ServiceAbsent    = plan.ServiceAbsent
	ServiceStopped   = plan.ServiceStopped
	ServiceRunning   = plan.ServiceRunning
	ServicePending   = plan.ServicePending
	ServiceDeleting  = plan.ServiceDeleting
	StateFolder      = plan.StateFolder
	LockFile         = plan.LockFile
	VerbClear        = plan.VerbClear
	VerbMake         = plan.VerbMake
	VerbSet          = plan.VerbSet
	VerbUnset        = plan.VerbUnset
	VerbWrite        = plan.VerbWrite
	VerbStop         = plan.VerbStop
	VerbPut          = plan.VerbPut
	VerbDelete       = plan.VerbDelete
	VerbRemove       = plan.VerbRemove
	VerbStart        = plan.VerbStart
	ReasonAbsent     = plan.ReasonAbsent
	ReasonDiffers    = plan.ReasonDiffers
	ReasonAccess     = plan.ReasonAccess
	ReasonUnwanted   = plan.ReasonUnwanted
	ReasonUnknown    = plan.ReasonUnknown
	ReasonStale      = plan.ReasonStale
	ReasonNotRunning = plan.ReasonNotRunning
	ReasonRestart    = plan.ReasonRestart
	ReasonDependency = plan.ReasonDependency
	ReasonInWay      = plan.ReasonInWay
)

var (
	NewName   = plan.NewName
	AsideName = plan.AsideName
	Leftover  = plan.Leftover
)
