package windowsnode

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
)

// rolloutSchema is the version of RolloutState. Within one version fields are only added.
const rolloutSchema = 1

// maxRolloutState is the size of the largest annotation that is read, in bytes.
const maxRolloutState = 16 << 10

// maxPastTurns is how many turns of a node are kept.
const maxPastTurns = 5

// RolloutState is what the operator knows about a node: the content of published.RolloutAnnotation. A node may change
// the annotations of its own Node, so it decides about this node and about slots that others wait for, and about
// nothing else.
//
// Its times are for people and for estimates, and tell one turn from the next. How long something lasts is decided by
// Elapsed: the clock of the operator may be set, and the operator may have been away.
type RolloutState struct {
	Schema int `json:"schema"`
	// Turn is about the bundle that is published.
	Turn Turn `json:"turn,omitzero"`
	// Slot is the share of rollout.maxUnavailable that the node holds.
	Slot Slot `json:"claim,omitzero"`
	// Failed is a bundle that did not work on this node, where another one is published since. It is not retried.
	Failed bundle.Digest `json:"failed,omitempty"`
	// FailedRetry is what published.RetryAnnotation was then. Another value asks for another try.
	FailedRetry bundle.Digest `json:"failedRetry,omitempty"`
	// Postponed is set for a node whose drain did not end in time: when it was expected to be taken again.
	Postponed time.Time `json:"postponed,omitzero"`
	// Booted stands for the value of published.RebootAnnotation that the host was booted for last, or that was given
	// up. It asks for no other boot.
	Booted bundle.Digest `json:"booted,omitempty"`
	// WindowsBoot is the last boot that Windows itself had waited for, where the settings ask the operator to see to
	// such boots.
	WindowsBoot WindowsBoot `json:"windowsBoot,omitzero"`
	// Elapsed is how much time operators have seen pass before this was written.
	Elapsed Elapsed `json:"elapsed,omitzero"`
	// Past are the turns before, the latest first.
	Past []Turn `json:"past,omitempty"`
}

// Turn is the change of one node to one bundle.
type Turn struct {
	Bundle bundle.Digest `json:"bundle"`
	// Impact is the highest that was permitted.
	Impact bundle.Impact `json:"impact"`
	// Boot is what the operator signed for a boot on request; empty where the turn has none.
	Boot bundle.Digest `json:"boot,omitempty"`
	// Canary is true for a node that went before the others.
	Canary bool `json:"canary,omitempty"`
	// Begun is when the node was taken, or the bundle published; Permitted is when this impact was permitted.
	Begun     time.Time `json:"begun"`
	Permitted time.Time `json:"permitted"`
	// Ended is when the node was released or, for canaries, seen to have the bundle. Confirmed is when a canary had
	// settled.
	Ended     time.Time `json:"ended,omitzero"`
	Confirmed time.Time `json:"confirmed,omitzero"`
	// Retry stands for what published.RetryAnnotation was. Another value gives a turn that has failed its time again.
	Retry bundle.Digest `json:"retry,omitempty"`
	// Result is how a past turn ended; empty if another bundle replaced this one before.
	Result published.State `json:"result,omitempty"`
}

// Slot is a node's share of rollout.maxUnavailable while it is drained and changed.
type Slot struct {
	Taken time.Time `json:"taken"`
	// Held is true when all reservations were counted after it was taken, and fit. Before, it is canceled where they do
	// not.
	Held bool `json:"held,omitempty"`
	// Blocked names the PodDisruptionBudget that forbids the drain, and the pod; empty while none does.
	Blocked string `json:"blocked,omitempty"`
	// ScaleDown is true if the operator forbade the autoscaler to remove the node.
	ScaleDown bool `json:"scaleDown,omitempty"`
}

// WindowsBoot is a boot of a host for what Windows itself waited for.
type WindowsBoot struct {
	// Reasons are what Windows waited for, as JoinBoots writes them, without those that have been seen gone since. They
	// ask for no other boot.
	Reasons string `json:"reasons,omitempty"`
	// Request is what the operator signed for the boot; empty if a person asked for it.
	Request bundle.Digest `json:"request,omitempty"`
	// Begun is when the boot was permitted.
	Begun time.Time `json:"begun"`
}

// Elapsed is for how long the states that decisions depend on had lasted, for an operator that is started later. It is written with
// every step and, where a turn takes long, a few times in it.
type Elapsed struct {
	Permitted int64 `json:"permittedSeconds,omitempty"`
	Ended     int64 `json:"endedSeconds,omitempty"`
	Taken     int64 `json:"takenSeconds,omitempty"`
	Postponed int64 `json:"postponedSeconds,omitempty"`
	// Booted is about WindowsBoot.
	Booted int64 `json:"bootedSeconds,omitempty"`
	// Ready is for a canary that is observed: for how long it had been Ready, since it became so at ReadySince by its
	// clock. It counts for an operator that is started later if that has not changed.
	Ready      int64     `json:"readySeconds,omitempty"`
	ReadySince time.Time `json:"readySince,omitzero"`
}

// IsZero reports whether there is no slot.
func (c Slot) IsZero() bool { return c == Slot{} }

// IsZero reports whether there was no such boot.
func (b WindowsBoot) IsZero() bool { return b == WindowsBoot{} }

// IsZero reports whether there was no turn.
func (t Turn) IsZero() bool { return t == Turn{} }

// Encode returns the text of the annotation. The same value gives the same text.
func (s RolloutState) Encode() (string, error) {
	s.Schema = rolloutSchema
	text, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encoding the state of the rollout: %w", err)
	}
	return string(text), nil
}

// DecodeRolloutState reads what Encode wrote; empty text is no state. The annotation of a newer program is a
// *bundle.SchemaError, anything else that cannot be used is published.ErrInvalid.
func DecodeRolloutState(text string) (RolloutState, error) {
	if text == "" {
		return RolloutState{}, nil
	}
	if len(text) > maxRolloutState {
		return RolloutState{}, fmt.Errorf("%w: the state of the rollout has %d bytes, at most %d are allowed",
			published.ErrInvalid, len(text), maxRolloutState)
	}
	if err := bundle.CheckSchema([]byte(text), "state of the rollout", rolloutSchema); err != nil {
		if newer := (*bundle.SchemaError)(nil); errors.As(err, &newer) {
			return RolloutState{}, err
		}
		return RolloutState{}, fmt.Errorf("%w: %v", published.ErrInvalid, err) //nolint:errorlint // the error of the library is no contract
	}
	var s RolloutState
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return RolloutState{}, fmt.Errorf("%w: the state of the rollout is not JSON of the right form: %v", published.ErrInvalid, err) //nolint:errorlint // the error of the library is no contract
	}
	s.Past = s.Past[:min(len(s.Past), maxPastTurns)]
	return s, nil
}

// WithTurn returns the state with a new turn. The one before is kept with its end.
func (s RolloutState) WithTurn(t, before Turn) RolloutState {
	if !before.IsZero() && before.Bundle != t.Bundle {
		s.Past = append([]Turn{before}, s.Past[:min(len(s.Past), maxPastTurns-1)]...)
	}
	s.Turn, s.Postponed = t, time.Time{}
	return s
}
