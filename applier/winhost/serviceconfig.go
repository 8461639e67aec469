package winhost

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"wmco/applier"
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
	case applier.StartManual:
		return startManual, nil
	case applier.StartDisabled:
		return startDisabled, nil
	}
	return 0, fmt.Errorf("unknown start type %q", start)
}

// startName is what a machine's start type is called. Drivers have others, which no service of ours has.
func startName(start uint32) bundle.StartType {
	switch start {
	case startAuto:
		return bundle.StartAuto
	case startManual:
		return applier.StartManual
	case startDisabled:
		return applier.StartDisabled
	}
	return bundle.StartType(fmt.Sprintf("type %d", start))
}

// The states of services (learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_status_process).
const (
	stateStopped = 1 // SERVICE_STOPPED
	stateRunning = 4 // SERVICE_RUNNING
)

func statusName(state uint32) applier.ServiceStatus {
	switch state {
	case stateStopped:
		return applier.ServiceStopped
	case stateRunning:
		return applier.ServiceRunning
	}
	return applier.ServicePending
}

// actionRestart is SC_ACTION_RESTART, the only failure action that we use
// (learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-sc_action).
const actionRestart = 1

// failureAction is an SC_ACTION; Delay is in milliseconds.
type failureAction struct{ Type, Delay uint32 }

// failureActions are the actions of a recovery. When a service fails more often than there are actions, the last one is
// repeated (learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_failure_actionsw).
func failureActions(r bundle.Recovery) []failureAction {
	var actions []failureAction
	for _, s := range r.RestartAfterSeconds {
		actions = append(actions, failureAction{actionRestart, uint32(s) * 1000}) //nolint:gosec // seconds of a manifest
	}
	return actions
}

// recoveryOf is the recovery that actions make. One that is no restart shows as a delay of -1, which no bundle asks for.
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
// numbers, the count, and where the actions begin, as little-endian 32-bit numbers.
const headFailureActions = 20

// encodeFailureActions writes a recovery as the service control manager keeps it in the service's registry key.
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

// decodeFailureActions reads what encodeFailureActions writes.
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

// multiString is a list of strings, each with a NUL at its end, and another NUL. An empty list is two: that is how the
// service control manager is told to forget dependencies, where no list at all changes nothing
// (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-changeserviceconfigw, lpDependencies).
func multiString(list []string) []uint16 {
	if len(list) == 0 {
		return []uint16{0, 0}
	}
	return append(utf16.Encode([]rune(strings.Join(list, "\x00"))), 0, 0)
}

// sortedEnvironment are the variables of a service in the order of a manifest.
func sortedEnvironment(variables []string) []string {
	if len(variables) == 0 {
		return nil
	}
	return slices.Sorted(slices.Values(variables))
}

// serviceLimits bound the waits for the service control manager.
type serviceLimits struct {
	// start is for a service to run, stop for it to stop, die for its processes to end after that.
	start, stop, die time.Duration
	// killed is for killed processes to be gone, and for the service control manager to see it.
	killed time.Duration
	// free is for the name of a deleted service to be free.
	free time.Duration
	// poll is between two looks.
	poll time.Duration
}

// usualLimits are generous: a busy machine starts a kubelet in half a minute.
func usualLimits() serviceLimits {
	return serviceLimits{
		start: 2 * time.Minute, stop: 90 * time.Second, die: 20 * time.Second, killed: time.Minute,
		free: 30 * time.Second, poll: 50 * time.Millisecond,
	}
}
