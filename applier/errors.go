package applier

import (
	"errors"
	"fmt"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// RefusedError means that nothing was done because of what was asked.
type RefusedError struct {
	Why     string
	Missing []protocol.Missing
	// Impact is what the plan costs, if that is more than is allowed.
	Impact bundle.Impact
	// Foreign is true if the bundle names something that is not in the table of this program (Engine.Permits): it is
	// for a newer one, or of another project.
	Foreign bool
}

func (e *RefusedError) Error() string { return e.Why }

// CheckImpact refuses an impact above the limit, as a *RefusedError. No limit allows everything.
func CheckImpact(impact, limit bundle.Impact) error {
	if err := impact.CheckLimit(limit); err != nil {
		return &RefusedError{Why: err.Error(), Impact: impact}
	}
	return nil
}

// refuseMissing refuses a bundle because of contents that have to be sent.
func refuseMissing(missing []protocol.Missing) error {
	why := fmt.Sprintf("%s missing, the first is %s: send them", bundle.Count(len(missing), "content"), missing[0].Digest)
	return &RefusedError{Why: why, Missing: missing}
}

// RolledBackError means that the bundle did not work and that the host was rolled back.
type RolledBackError struct{ Err error }

func (e *RolledBackError) Error() string { return "rolled back: " + e.Err.Error() }

func (e *RolledBackError) Unwrap() error { return e.Err }

// PartialError means that a run ended before the bundle was applied whole. The next run resumes it.
type PartialError struct{ Err error }

func (e *PartialError) Error() string { return "applied in part: " + e.Err.Error() }

func (e *PartialError) Unwrap() error { return e.Err }

// FaultError means that the host, and not the request, is why a run did nothing or a question has no answer.
type FaultError struct{ Err error }

func (e *FaultError) Error() string { return e.Err.Error() }

func (e *FaultError) Unwrap() error { return e.Err }

// wrapAsFault returns an error as a *FaultError, unless it has a fault already.
func wrapAsFault(err error) error {
	var fault *FaultError
	var locked *LockedError
	if err == nil || isRefusal(err) || errors.As(err, &fault) || errors.As(err, &locked) {
		return err
	}
	return &FaultError{Err: err}
}

// isRefusal reports whether what was asked, and not the host, is why nothing was done.
func isRefusal(err error) bool {
	var refused *RefusedError
	var newer *bundle.SchemaError
	var stream *streamError
	return errors.As(err, &refused) || errors.As(err, &newer) || errors.As(err, &stream) ||
		errors.Is(err, bundle.ErrInconsistent) || errors.Is(err, bundle.ErrPath) ||
		errors.Is(err, bundle.ErrTooLarge) || errors.Is(err, archive.ErrMalformed)
}

// streamError is an error of the archive that a bundle comes in, which may have ended early.
type streamError struct{ err error }

func (e *streamError) Error() string { return e.err.Error() }

func (e *streamError) Unwrap() error { return e.err }

// UnfinishedError means that a bundle is being rolled back and that this could not be ended. Repair goes on with it.
type UnfinishedError struct {
	// Why is why it is rolled back, Err why that has not ended.
	Why, Err error
}

func (e *UnfinishedError) Error() string { return fmt.Sprintf("%v; rolling back: %v", e.Why, e.Err) }

// Unwrap implements errors.
func (e *UnfinishedError) Unwrap() []error { return []error{e.Why, e.Err} }
