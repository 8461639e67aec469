package agent

import (
	"errors"
	"fmt"
	"strings"

	"wmco/applier"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/bundle/published"
)

// faultError is an error of which is known where it arises whose fault it is.
type faultError struct {
	fault published.Fault
	err   error
}

func (e *faultError) Error() string { return e.err.Error() }

func (e *faultError) Unwrap() error { return e.err }

// faultOf returns whose fault an error is; empty where that is not known. A full disk comes first: a run that is rolled
// back for it is no fault of its bundle.
func faultOf(err error) published.Fault {
	var known *faultError
	var service *applier.ServiceError
	var file *applier.FileError
	var host *applier.FaultError
	var locked *applier.LockedError
	var newer *bundle.SchemaError
	var refused *applier.RefusedError
	switch {
	case errors.Is(err, applier.ErrDiskFull):
		return published.FaultDisk
	case errors.As(err, &known):
		return known.fault
	case errors.Is(err, errAway):
		return published.FaultAPI
	case errors.As(err, &service), errors.Is(err, errNotReady), errors.Is(err, errSilent), errors.Is(err, bundle.ErrInconsistent), errors.Is(err, bundle.ErrPath), errors.Is(err, bundle.ErrTooLarge):
		return published.FaultInput
	case errors.As(err, &newer):
		return published.FaultAgent
	case errors.As(err, &refused) && refused.Foreign: // the operator checks what it renders with the table of its own version
		return published.FaultAgent
	case errors.As(err, &file), errors.As(err, &host), errors.As(err, &locked):
		return published.FaultHost
	}
	return ""
}

// withFixForNewer adds what to do about a bundle that names what only a newer agent knows (docs/decisions/0023).
func withFixForNewer(err error) error {
	var refused *applier.RefusedError
	if !errors.As(err, &refused) || !refused.Foreign {
		return err
	}
	return fmt.Errorf("%w; the node agent is older than the operator by more than one release (fix: install the release between, or bring the newer agent with wmco apply --host)", err)
}

// partError is why a Secret could not be fetched.
func partError(name string, err error) error {
	fault := published.FaultAPI
	if errors.Is(err, ErrNotPublished) {
		fault = published.FaultLayer
	}
	return &faultError{fault, fmt.Errorf("fetching Secret %s: %w", name, err)}
}

// openError names the Secrets of a layer that does not have its digest. The layer of a newer program is not damaged.
func openError(l published.Layer, namespace string, err error) error {
	if !errors.Is(err, archive.ErrMalformed) && !errors.Is(err, published.ErrInvalid) {
		return err
	}
	where := "the annotation " + published.DesiredAnnotation
	if names := l.Names(); len(names) > 0 {
		where = "Secret " + strings.Join(names, " or Secret ") + " of namespace " + namespace
	}
	return &faultError{published.FaultLayer, fmt.Errorf("the layer in %s is damaged: %w", where, err)}
}
