package simulation

import (
	"fmt"
	"slices"
	"strings"

	"wmco/applier"
	"wmco/bundle"
)

// Script is what goes wrong on a host. What it does not name is healthy.
type Script struct {
	// Services are behaviours by the service's name.
	Services map[string]Behaviour `json:"services,omitempty"`
	// Probes are targets that do not answer.
	Probes []SilentProbe `json:"probes,omitempty"`
	// Locked are files that another program has open without sharing.
	Locked []string `json:"locked,omitempty"`
	// Denied are paths at and below which writing is denied.
	Denied []string `json:"denied,omitempty"`
	// Full are paths at and below which the disk is full.
	Full []string `json:"full,omitempty"`
	// DiskBytes is the size of the drive in bytes; 0 is no limit.
	DiskBytes int64 `json:"diskBytes,omitempty"`
	// Silent are parts of Windows that do not answer: nothing of them is known, and nothing can be changed by them.
	Silent []Part `json:"silent,omitempty"`
}

// Part is a part of Windows that may not answer.
type Part string

const (
	// PartHNS is the Host Networking Service.
	PartHNS Part = "the Host Networking Service"
	// PartDISM keeps features.
	PartDISM Part = "DISM"
	// PartWMI keeps the settings of Defender.
	PartWMI Part = "WMI"
)

// parts are the parts that keep settings, by kind.
var parts = map[bundle.EntryKind]Part{
	bundle.KindEndpoint: PartHNS, bundle.KindNetwork: PartHNS, bundle.KindFeature: PartDISM, bundle.KindExclusion: PartWMI,
}

// answers returns an error if a part does not answer.
func (s Script) answers(p Part) error {
	if slices.Contains(s.Silent, p) {
		return fmt.Errorf("%s has not answered within 30s", p)
	}
	return nil
}

// Behaviour is how one service behaves.
type Behaviour struct {
	Start StartBehaviour `json:"start,omitempty"`
	Stop  StopBehaviour  `json:"stop,omitempty"`
	After AfterBehaviour `json:"after,omitempty"`
	// Needs must all hold. Otherwise the program exits at once, as one that cannot read its configuration.
	Needs []Condition `json:"needs,omitempty"`
	// Child is the path of a program that the service starts.
	Child string `json:"child,omitempty"`
	// Answers are the targets of probes that succeed only while the service runs and is healthy.
	Answers []string `json:"answers,omitempty"`
	// Healthy must all hold for the service to answer.
	Healthy []Condition `json:"healthy,omitempty"`
	// HealthyAfter is the number of probes of one target that fail after each start.
	HealthyAfter int `json:"healthyAfter,omitempty"`
	// Held is true while another program has a handle to the service. A deleted one then stays marked for deletion.
	Held bool `json:"held,omitempty"`
}

// StartBehaviour is how a service starts.
type StartBehaviour string

const (
	// StartWell starts.
	StartWell StartBehaviour = ""
	// StartExits exits at once.
	StartExits StartBehaviour = "exits"
	// StartHangs never reports that it runs.
	StartHangs StartBehaviour = "hangs"
)

// StopBehaviour is how a service stops.
type StopBehaviour string

const (
	// StopWell stops when asked to.
	StopWell StopBehaviour = ""
	// StopHangs has to be killed.
	StopHangs StopBehaviour = "hangs"
)

// AfterBehaviour is what happens to a service after it started.
type AfterBehaviour string

const (
	// AfterStays keeps running.
	AfterStays AfterBehaviour = ""
	// AfterCrashes has stopped when its status is next read.
	AfterCrashes AfterBehaviour = "crashes"
	// AfterRestarts is restarted by the service control manager again and again: another process each time its status
	// is read.
	AfterRestarts AfterBehaviour = "restarts"
)

// Condition is a condition on a file. Without Contains and Lacks the file must exist.
type Condition struct {
	File string `json:"file"`
	// Contains is a text that must be in the file.
	Contains string `json:"contains,omitempty"`
	// Lacks is a text that must not be in the file. A file that does not exist meets this.
	Lacks string `json:"lacks,omitempty"`
}

// SilentProbe is a target that does not answer. If Unless is not empty, it answers while all its conditions hold.
type SilentProbe struct {
	Target string      `json:"target"`
	Unless []Condition `json:"unless,omitempty"`
}

func (s Script) behaviour(service string) Behaviour {
	for name, b := range s.Services {
		if strings.EqualFold(name, service) {
			return b
		}
	}
	return Behaviour{}
}

// Refuses returns why writing at path fails, nil if it does not.
func (s Script) Refuses(path string) error {
	if err := s.RefusesRemoval(path); err != nil {
		return err
	}
	if covered(s.Full, path) {
		return &applier.FileError{Path: path, Reason: applier.FileDiskFull, Err: ErrDiskFull}
	}
	return nil
}

// RefusesRemoval returns why removing the entry at path fails, nil if it does not.
func (s Script) RefusesRemoval(path string) error {
	if s.Locks(path) {
		return &applier.FileError{Path: path, Reason: applier.FileLocked, Err: ErrSharingViolation}
	}
	if covered(s.Denied, path) {
		return &applier.FileError{Path: path, Reason: applier.FileDenied, Err: ErrAccessDenied}
	}
	return nil
}

// Locks reports whether another program has the file open without sharing.
func (s Script) Locks(path string) bool {
	for _, locked := range s.Locked {
		if bundle.FoldPath(locked) == bundle.FoldPath(path) {
			return true
		}
	}
	return false
}

func covered(tops []string, path string) bool {
	folded := bundle.FoldPath(path)
	for _, top := range tops {
		top = bundle.FoldPath(top)
		if folded == top || strings.HasPrefix(folded, top+`\`) {
			return true
		}
	}
	return false
}
