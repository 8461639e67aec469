package rollout

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
)

// Schema is the version of State. Within one version fields are only added.
const Schema = 1

const (
	// maxState is the size of the largest annotation that is read, in bytes.
	maxState = 16 << 10
	// maxPast is how many turns of a node are kept.
	maxPast = 5
)

// State is what the operator knows about a node: the content of published.RolloutAnnotation. A node may change the annotations
// of its own Node, so it decides about this node and about places that others wait for, and about nothing else.
//
// Its times are for people and for estimates, and tell one turn from the next. How long something lasts is decided by Elapsed: the clock of the
// operator may be set, and the operator may have been away.
type State struct {
	Schema int `json:"schema"`
	// Turn is about the bundle that is published.
	Turn Turn `json:"turn,omitzero"`
	// Claim is a place among the unavailable nodes.
	Claim Claim `json:"claim,omitzero"`
	// Failed is a bundle that did not work on this node, where another one is published since. It is not tried again.
	Failed bundle.Digest `json:"failed,omitempty"`
	// FailedRetry is what published.RetryAnnotation was then. Another value asks for another try.
	FailedRetry bundle.Digest `json:"failedRetry,omitempty"`
	// Postponed is set for a node whose drain did not end in time: when it was expected to be taken again.
	Postponed time.Time `json:"postponed,omitzero"`
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
	// Canary is true for a node that went before the others.
	Canary bool `json:"canary,omitempty"`
	// Begun is when the node was taken, or the bundle published; Permitted is when this impact was permitted.
	Begun     time.Time `json:"begun"`
	Permitted time.Time `json:"permitted"`
	// Ended is when the node was released or, for canaries, seen to have the bundle. Confirmed is when a canary had settled.
	Ended     time.Time `json:"ended,omitzero"`
	Confirmed time.Time `json:"confirmed,omitzero"`
	// Retry stands for what published.RetryAnnotation was. Another value gives a turn that has failed its time again.
	Retry bundle.Digest `json:"retry,omitempty"`
	// Result is how a past turn ended; empty if another bundle replaced this one before.
	Result published.State `json:"result,omitempty"`
}

// Claim is a place among the unavailable nodes.
type Claim struct {
	Taken time.Time `json:"taken"`
	// Held is true when all claims were counted after it was taken, and fitted. Before, it is withdrawn where they do not.
	Held bool `json:"held,omitempty"`
	// Blocked names the PodDisruptionBudget that forbids the drain, and the pod; empty while none does.
	Blocked string `json:"blocked,omitempty"`
	// ScaleDown is true if the operator forbade the autoscaler to remove the node.
	ScaleDown bool `json:"scaleDown,omitempty"`
}

// IsZero reports whether there is no claim.
func (c Claim) IsZero() bool { return c == Claim{} }

// IsZero reports whether there was no turn.
func (t Turn) IsZero() bool { return t == Turn{} }

// Encode returns the text of the annotation. The same value gives the same text.
func (s State) Encode() (string, error) {
	s.Schema = Schema
	text, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encoding the state of the rollout: %w", err)
	}
	return string(text), nil
}

// DecodeState reads what Encode wrote; empty text is no state. The annotation of a newer program is a *bundle.SchemaError, anything
// else that cannot be used is published.ErrInvalid.
func DecodeState(text string) (State, error) {
	if text == "" {
		return State{}, nil
	}
	if len(text) > maxState {
		return State{}, fmt.Errorf("%w: the state of the rollout has %d bytes, at most %d are allowed", published.ErrInvalid, len(text), maxState)
	}
	if err := bundle.CheckSchema([]byte(text), "state of the rollout", Schema); err != nil {
		if newer := (*bundle.SchemaError)(nil); errors.As(err, &newer) {
			return State{}, err
		}
		return State{}, fmt.Errorf("%w: %v", published.ErrInvalid, err) //nolint:errorlint // the error of the library is no contract
	}
	var s State
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return State{}, fmt.Errorf("%w: the state of the rollout is not JSON of the right form: %v", published.ErrInvalid, err) //nolint:errorlint // the error of the library is no contract
	}
	s.Past = s.Past[:min(len(s.Past), maxPast)]
	return s, nil
}

// retryOf stands for the value of published.RetryAnnotation, whose length has no limit.
func retryOf(text string) bundle.Digest {
	if text == "" {
		return ""
	}
	return bundle.Of([]byte(text))
}

// turned returns the state with a new turn. The one before is kept with its end.
func (s State) turned(t Turn, before Turn) State {
	if !before.IsZero() && before.Bundle != t.Bundle {
		s.Past = append([]Turn{before}, s.Past[:min(len(s.Past), maxPast-1)]...)
	}
	s.Turn, s.Postponed = t, time.Time{}
	return s
}
