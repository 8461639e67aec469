package release

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"wmco/bundle"
	"wmco/payload"
	"wmco/payload/store"
)

// RefusedError is what a payload lacks for a release.
type RefusedError struct {
	Dir      string
	Problems []string
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("payload %q is refused: %s:\n  %s", e.Dir, bundle.Count(len(e.Problems), "problem"), strings.Join(e.Problems, "\n  "))
}

// payload opens the payload, and checks every byte of it.
func (i Image) payload() (*store.Store, error) {
	opened, err := store.Open(i.Payload)
	if err != nil {
		return nil, err
	}
	if err := opened.Verify(context.Background()); err != nil {
		return nil, err
	}
	var problems []string
	for _, e := range opened.Entries() {
		if e.Name == payload.Agent && e.Version != i.Labels.Version {
			problems = append(problems, fmt.Sprintf(
				"%s is of version %q, and the release %q (fix: make payload PAYLOAD=%s VERSION=%s)", e.Name, e.Version,
				i.Labels.Version, e.Name, i.Labels.Version,
			))
		}
		problem, err := i.bill(e)
		if err != nil {
			return nil, err
		}
		if problem != "" {
			problems = append(problems, problem)
		}
	}
	if !i.AllowMissing {
		problems = append(problems, missing(opened.Set())...)
	}
	if len(problems) > 0 {
		return nil, &RefusedError{Dir: i.Payload, Problems: problems}
	}
	return opened, nil
}

func missing(set payload.Set) []string {
	var problems []string
	for _, x := range set.Missing() {
		problems = append(problems, fmt.Sprintf(
			"%s is missing, which nodes on %s need (fix: make payload PAYLOAD=%s, or allow it: ALLOW_MISSING=1)",
			x.Name, x.On(), x.Name,
		))
	}
	return problems
}

// bill returns the problem of the bill of materials of an executable, if there is one.
func (i Image) bill(e store.Entry) (string, error) {
	name := filepath.Join(i.Bills, billOf(e.Name))
	if !exists(name) {
		if i.AllowMissing {
			return "", nil
		}
		return fmt.Sprintf("%s has no bill of materials %s (fix: make payload PAYLOAD=%s, or allow it: ALLOW_MISSING=1)", e.Name, name, e.Name), nil
	}
	b, err := readBill(name)
	if err != nil {
		return "", err
	}
	if have := sha256Of(b.Metadata.Component); have != strings.TrimPrefix(string(e.Raw.Digest), "sha256:") {
		return fmt.Sprintf("%s is the bill of materials of another build of %s (fix: make payload PAYLOAD=%s)", name, e.Name, e.Name), nil
	}
	return "", nil
}

// Lacks returns one line for each executable that the payload lacks.
func (i Image) Lacks() ([]string, error) {
	opened, err := store.Open(i.Payload)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, x := range opened.Set().Missing() {
		lines = append(lines, fmt.Sprintf("%s: no node on %s can join", x.Name, x.On()))
	}
	return lines, nil
}
