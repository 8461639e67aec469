package simulation

import (
	"strings"

	"wmco/applier"
	"wmco/bundle"
)

// Script says what does not go well on a machine. What it does not name is healthy.
type Script struct {
	// Services are behaviours by the service's name.
	Services map[string]Behaviour `json:"services,omitempty"`
	// Probes are targets that do not answer.
	Probes []SilentProbe `json:"probes,omitempty"`
	// Locked are files that another program keeps open and shares with nobody.
	Locked []string `json:"locked,omitempty"`
	// Denied are paths at and below which nobody may write.
	Denied []string `json:"denied,omitempty"`
	// Full are paths at and below which there is no space left.
	Full []string `json:"full,omitempty"`
}

// Behaviour is what one service does.
type Behaviour struct {
	Start StartBehaviour `json:"start,omitempty"`
	Stop  StopBehaviour  `json:"stop,omitempty"`
	After AfterBehaviour `json:"after,omitempty"`
	// Needs must all hold, else the program exits at once, as one does that cannot read its configuration.
	Needs []Condition `json:"needs,omitempty"`
	// Child is the path of a program that the service starts.
	Child string `json:"child,omitempty"`
	// Answers are the targets of probes that hold only while the service runs and is healthy.
	Answers []string `json:"answers,omitempty"`
	// Healthy must all hold for the service to answer.
	Healthy []Condition `json:"healthy,omitempty"`
	// HealthyAfter is how many probes of one target do not hold after each start.
	HealthyAfter int `json:"healthyAfter,omitempty"`
	// Held says that another program has a handle to the service, which keeps it marked for deletion once it is deleted.
	Held bool `json:"held,omitempty"`
}

// StartBehaviour is how a service starts.
type StartBehaviour string

const (
	// StartWell comes up.
	StartWell StartBehaviour = ""
	// StartExits ends at once.
	StartExits StartBehaviour = "exits"
	// StartHangs never says that it runs.
	StartHangs StartBehaviour = "hangs"
)

// StopBehaviour is how a service stops.
type StopBehaviour string

const (
	// StopWell ends when it is asked to.
	StopWell StopBehaviour = ""
	// StopHangs has to be killed.
	StopHangs StopBehaviour = "hangs"
)

// AfterBehaviour is what becomes of a service that came up.
type AfterBehaviour string

const (
	// AfterStays runs on.
	AfterStays AfterBehaviour = ""
	// AfterCrashes is gone when it is next asked about.
	AfterCrashes AfterBehaviour = "crashes"
	// AfterRestarts dies and is restarted by the service control manager: another process each time it is asked about.
	AfterRestarts AfterBehaviour = "restarts"
)

// Condition is something that a file must be. Without Contains and Lacks the file must be there.
type Condition struct {
	File string `json:"file"`
	// Contains is a text that the file must hold.
	Contains string `json:"contains,omitempty"`
	// Lacks is a text that the file must not hold; a file that is not there lacks it.
	Lacks string `json:"lacks,omitempty"`
}

// SilentProbe is a target that does not answer, unless all conditions of a list that is not empty hold.
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

// Refuses tells why the script lets nobody write at path, nil if it does.
func (s Script) Refuses(path string) error {
	if err := s.RefusesRemoval(path); err != nil {
		return err
	}
	if covered(s.Full, path) {
		return &applier.FileError{Path: path, Reason: applier.FileDiskFull, Err: ErrDiskFull}
	}
	return nil
}

// RefusesRemoval tells why the script lets nobody remove what stands at path, nil if it does.
func (s Script) RefusesRemoval(path string) error {
	if s.Locks(path) {
		return &applier.FileError{Path: path, Reason: applier.FileLocked, Err: ErrSharingViolation}
	}
	if covered(s.Denied, path) {
		return &applier.FileError{Path: path, Reason: applier.FileDenied, Err: ErrAccessDenied}
	}
	return nil
}

// Locks tells whether another program keeps the file to itself.
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
