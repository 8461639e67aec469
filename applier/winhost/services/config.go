package services

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"wmco/applier/plan"
	"wmco/bundle"
)

// The start types of services (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-createservicew, dwStartType).
const (
	startAuto     = 2 // SERVICE_AUTO_START
	startManual   = 3 // SERVICE_DEMAND_START
	startDisabled = 4 // SERVICE_DISABLED
)

func startNumber(start bundle.StartType) (uint32, error) {
	switch start {
	case bundle.StartAuto:
		return startAuto, nil
	case plan.StartManual:
		return startManual, nil
	case plan.StartDisabled:
		return startDisabled, nil
	}
	return 0, fmt.Errorf("unknown start type %q", start)
}

// startName returns the name of a start type. Those of drivers have none, and no bundle has them.
func startName(start uint32) bundle.StartType {
	switch start {
	case startAuto:
		return bundle.StartAuto
	case startManual:
		return plan.StartManual
	case startDisabled:
		return plan.StartDisabled
	}
	return bundle.StartType(fmt.Sprintf("type %d", start))
}

// The states of services (learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_status_process).
const (
	stateStopped = 1 // SERVICE_STOPPED
	stateRunning = 4 // SERVICE_RUNNING
)

func statusName(state uint32) plan.ServiceStatus {
	switch state {
	case stateStopped:
		return plan.ServiceStopped
	case stateRunning:
		return plan.ServiceRunning
	}
	return plan.ServicePending
}

// actionRestart is SC_ACTION_RESTART, the only failure action of a bundle
// (learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-sc_action).
const actionRestart = 1

// failureAction is an SC_ACTION; Delay is in milliseconds.
type failureAction struct{ Type, Delay uint32 }

// failureActions returns the actions of a recovery. If a service fails more often than it has actions, Windows repeats
// the last one (learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_failure_actionsw).
func failureActions(r bundle.Recovery) []failureAction {
	var actions []failureAction
	for _, s := range r.RestartAfterSeconds {
		actions = append(actions, failureAction{actionRestart, uint32(s) * 1000}) //nolint:gosec // seconds of a manifest
	}
	return actions
}

// recoveryOf is the inverse of failureActions. An action that is not a restart has a delay of -1, which no bundle has.
func recoveryOf(resetSeconds uint32, actions []failureAction) bundle.Recovery {
	r := bundle.Recovery{ResetSeconds: int(resetSeconds)}
	for _, a := range actions {
		delay := int(a.Delay / 1000)
		if a.Type != actionRestart {
			delay = -1
		}
		r.RestartAfterSeconds = append(r.RestartAfterSeconds, delay)
	}
	return r
}

// headFailureActions is the length of the fixed part of the registry value FailureActions: reset period, two unused
// numbers, the number of actions and their offset, each a little-endian 32-bit number.
const headFailureActions = 20

// encodeFailureActions returns the registry value in which the service control manager keeps a recovery.
func encodeFailureActions(r bundle.Recovery) []byte {
	actions := failureActions(r)
	data := make([]byte, headFailureActions, headFailureActions+8*len(actions))
	binary.LittleEndian.PutUint32(data, uint32(r.ResetSeconds))    //nolint:gosec // seconds of a manifest
	binary.LittleEndian.PutUint32(data[12:], uint32(len(actions))) //nolint:gosec // a handful
	binary.LittleEndian.PutUint32(data[16:], uint32(headFailureActions))
	for _, a := range actions {
		data = binary.LittleEndian.AppendUint32(data, a.Type)
		data = binary.LittleEndian.AppendUint32(data, a.Delay)
	}
	return data
}

// decodeFailureActions is the inverse of encodeFailureActions.
func decodeFailureActions(data []byte) (bundle.Recovery, error) {
	if len(data) < headFailureActions {
		return bundle.Recovery{}, fmt.Errorf("reading failure actions: %d bytes, at least %d are needed", len(data), headFailureActions)
	}
	count := int64(binary.LittleEndian.Uint32(data[12:]))
	if int64(len(data)) < headFailureActions+8*count {
		return bundle.Recovery{}, fmt.Errorf("reading failure actions: %d actions in %d bytes", count, len(data))
	}
	var actions []failureAction
	for rest := data[headFailureActions:]; count > 0; count, rest = count-1, rest[8:] {
		actions = append(actions, failureAction{binary.LittleEndian.Uint32(rest), binary.LittleEndian.Uint32(rest[4:])})
	}
	return recoveryOf(binary.LittleEndian.Uint32(data), actions), nil
}

// multiString returns a list of strings, each with a NUL at its end, and another NUL. An empty list is two NULs: it
// removes all dependencies of a service, while no list leaves them as they are
// (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-changeserviceconfigw, lpDependencies).
func multiString(list []string) []uint16 {
	if len(list) == 0 {
		return []uint16{0, 0}
	}
	return append(utf16.Encode([]rune(strings.Join(list, "\x00"))), 0, 0)
}

// sortedEnvironment returns the variables of a service in the order of a manifest.
func sortedEnvironment(variables []string) []string {
	if len(variables) == 0 {
		return nil
	}
	return slices.Sorted(slices.Values(variables))
}

// Limits are the limits of waits for the service control manager.
type Limits struct {
	// Start is the limit for a service to run, Stop for it to stop, and Exit for its processes to end after the stop.
	Start, Stop, Exit time.Duration
	// Killed is the limit for killed processes to be gone, and for the service control manager to notice.
	Killed time.Duration
	// Delete is the limit for the name of a deleted service to be free.
	Delete time.Duration
	// Poll is the pause between two questions.
	Poll time.Duration
}

// DefaultLimits are generous: a kubelet needs half a minute to start on a busy host.
func DefaultLimits() Limits {
	return Limits{
		Start: 2 * time.Minute, Stop: 90 * time.Second, Exit: 20 * time.Second, Killed: time.Minute,
		Delete: 30 * time.Second, Poll: 50 * time.Millisecond,
	}
}
