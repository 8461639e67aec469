package configure

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/bundle/reason"
	"wmco/controller/hosts"
)

// State is the state of a host that joins.
type State string

const (
	// StateJoined means that the node is complete.
	StateJoined State = "Joined"
	// StateJoining means that the join goes on without errors.
	StateJoining State = "Joining"
	// StateWaiting means that a person or another program has to do something first.
	StateWaiting State = "Waiting"
	// StateFailed means that a step failed; it is retried.
	StateFailed State = "Failed"
	// StateGone means that the inputs do not have the host.
	StateGone State = "Gone"
	// StateLeaving means that the inputs have the host, but its Machine is being deleted, so the operator does not log in.
	StateLeaving State = "Leaving"
)

// Progress is the result of a call. Message and Fix are for people.
type Progress struct {
	State   State
	Reason  string
	Message string
	Fix     string
	// Log is the end of the log of the service because of which the host was rolled back.
	Log bundle.LogTail
	// Finished reports whether this call completed the node.
	Finished bool
	// Node is the name of the host's Node, empty before there is one.
	Node string
	// Again is how long to wait before the next call if no watch event comes first; zero means no such call.
	Again time.Duration
	// NotFetched is why the host could not fetch executables, which were sent to it; empty where it could.
	NotFetched string
	// Err is why a step failed.
	Err error
}

// Reasons of a Progress, beside those of findings.
const (
	ReasonJoined       = "Joined"
	ReasonUnreachable  = "Unreachable"
	ReasonSilent       = "HostSilent"
	ReasonLoginRefused = "LoginRefused"
	ReasonHostKey      = "HostKeyChanged"
	ReasonRolledBack   = "RolledBack"
	ReasonRebooting    = "Rebooting"
	ReasonRegistering  = "WaitingForNode"
	ReasonCompleting   = "Completing"
	ReasonSameHost     = "SameHost"
	ReasonNameTaken    = "NodeNameTaken"
	ReasonNotTheHost   = "NotTheHost"
	ReasonTranslated   = "AddressNotOnHost"
	ReasonOtherCluster = reason.HostOfAnotherCluster
	ReasonOtherRun     = "OtherRun"
	ReasonAPIError     = "APIServerError"
	ReasonNotFetched   = published.ReasonNotFetched
	ReasonFailed       = "JoinFailed"
	// Of a removal.
	ReasonDrainBlocked = "DrainBlocked"
	ReasonNotConfirmed = "RemovalNotConfirmed"
)

// FailureReasons returns the reasons of this package for which a join fails. Findings and node agents have more reasons.
func FailureReasons() []string {
	return []string{ReasonUnreachable, ReasonSilent, ReasonLoginRefused, ReasonHostKey, ReasonRolledBack,
		ReasonSameHost, ReasonNameTaken, ReasonNotTheHost, ReasonTranslated, ReasonOtherCluster, ReasonExpired,
		ReasonNotFetched, ReasonAPIError, ReasonFailed}
}

// Pauses between two calls.
const (
	// AgainSoon is for waiting for another program: a kubelet registers, a machine boots.
	AgainSoon = 15 * time.Second
	// againRecorded is for caches that do not have the last write yet.
	againRecorded = time.Second
	// againAPI is for errors of the API server.
	againAPI = 5 * time.Second
	// AgainDrain is for pods that terminate.
	AgainDrain = 5 * time.Second
	// AgainLater is for waiting for a person.
	AgainLater = time.Minute
)

// DisplayText returns the Progress for people.
func (p Progress) DisplayText() string {
	text := p.Message
	if p.Fix != "" {
		text += "; fix: " + p.Fix
	}
	return published.AppendLog(text, p.Log)
}

// refusal is a reason of this package with what to do.
type refusal struct{ reason, message, fix string }

func (e *refusal) Error() string { return e.message }

// ProgressOfError returns the Progress for an error.
func ProgressOfError(err error) Progress {
	p := Progress{State: StateFailed, Reason: ReasonFailed, Message: err.Error(), Fix: remote.SuggestFix(err),
		Again: AgainLater, Err: err}
	var unreachable *remote.UnreachableError
	var auth *remote.AuthError
	var key *remote.HostKeyError
	var refused *hosts.RefusedError
	var own *refusal
	var limit *remote.LimitError
	var other *hosts.OtherRunError
	switch {
	case IsStopped(err):
		return Progress{State: StateJoining, Reason: ReasonCompleting,
			Message: "the operator was stopped; the next one continues", Again: AgainSoon}
	case apierrors.IsConflict(err):
		return Progress{State: StateJoining, Reason: ReasonCompleting,
			Message: "another client has changed the Node; the operator reads it again", Again: AgainSoon}
	case errors.Is(err, errRecorded), errors.Is(err, errNoAddress), errors.Is(err, errOtherKey):
		return Progress{State: StateJoining, Reason: ReasonCompleting, Message: err.Error(), Again: againRecorded}
	case errors.Is(err, remote.ErrNoPlace):
		// It is called again as soon as there is a place.
		return Progress{State: StateJoining, Reason: ReasonCompleting, Message: err.Error(), Again: AgainLater}
	case hosts.IsHostBusy(err):
		return Progress{State: StateJoining, Reason: ReasonCompleting, Message: err.Error(), Again: AgainSoon}
	case errors.As(err, &other), errors.Is(err, remote.ErrOtherUpload):
		p.State, p.Reason, p.Again = StateWaiting, ReasonOtherRun, AgainSoon
	case isAPIServerError(err):
		p.State, p.Reason, p.Again = StateWaiting, ReasonAPIError, againAPI
		p.Fix = "none; the operator retries every few seconds. If it persists, check the API server"
	case errors.As(err, &own):
		p.Reason, p.Fix = own.reason, own.fix
	case errors.As(err, &refused):
		p.State, p.Reason, p.Fix = StateWaiting, refused.Findings.Sorted()[0].Reason, refused.Fix()
	case errors.As(err, &key):
		p.Reason = ReasonHostKey
	case errors.As(err, &auth):
		p.Reason = ReasonLoginRefused
	case errors.As(err, &unreachable):
		// A new machine may still boot, or run its user data.
		p.Reason, p.Again = ReasonUnreachable, AgainSoon
	case errors.Is(err, io.ErrUnexpectedEOF): // an answer that was cut, of the API server or of the host
		p.Again = againAPI
	case errors.Is(err, remote.ErrNoProgress), errors.As(err, &limit):
		p.Reason, p.Fix = ReasonSilent, "log in to the host over SSH and run a command, such as hostname: if it "+
			"does not end, restart the service sshd, or the host"
	}
	return p
}

// IsStopped reports whether an error comes from stopping the operator. A timeout of a host cancels a context too, and does
// not count.
func IsStopped(err error) bool {
	return errors.Is(err, context.Canceled) && !errors.Is(err, remote.ErrNoProgress) &&
		!errors.As(err, new(*remote.LimitError))
}

// isAPIServerError reports whether an error comes from the API server or the connection to it, and not from a host.
func isAPIServerError(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
	}
	return errors.As(err, new(*url.Error)) // of HTTP, which hosts are not reached with
}
