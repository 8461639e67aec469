// Package result has the results of the self-test: its outcomes, and their form in JSON. Whoever reads it links none of
// the clauses.
package result

import (
	"cmp"
	"fmt"
)

// Schema is the version of a Result.
const Schema = 1

// Result is what the self-test found on one machine. It is what golden/real keeps.
type Result struct {
	Schema int `json:"schema"`
	// Program is the version of the program.
	Program string  `json:"program"`
	System  System  `json:"system"`
	Started string  `json:"started"` // RFC 3339, UTC
	Seconds float64 `json:"seconds"`
	Passed  int     `json:"passed"`
	Failed  int     `json:"failed"`
	Skipped int     `json:"skipped"`
	// Removed is what an interrupted run had left and this one removed.
	Removed []string `json:"removed,omitempty"`
	// Left is what could not be removed at the end.
	Left    []string  `json:"left,omitempty"`
	Clauses []Outcome `json:"clauses"`
}

// System is the machine that was tested. It has no name and no address of the machine.
type System struct {
	// OSBuild is the version of Windows with its update, such as 10.0.20348.2340.
	OSBuild string `json:"osBuild"`
	// Edition is EditionID and InstallationType of Windows, such as ServerStandard (Server Core).
	Edition string `json:"edition,omitempty"`
	// Locale is the system's, such as en-US.
	Locale string `json:"locale,omitempty"`
	// Account is what the test ran as: AccountSystem, administrator or user.
	Account string `json:"account,omitempty"`
	// StandIn is what takes the place of Windows, such as Wine or a simulation; empty on Windows itself.
	StandIn string `json:"standIn,omitempty"`
}

// AccountSystem is the account LocalSystem.
const AccountSystem = "SYSTEM"

// Status is how a clause ended.
type Status string

const (
	// StatusPassed means that the host kept the promise.
	StatusPassed Status = "passed"
	// StatusFailed means that it did something else.
	StatusFailed Status = "failed"
	// StatusSkipped means that the clause was not tested.
	StatusSkipped Status = "skipped"
)

// Outcome is how one clause ended.
type Outcome struct {
	Part   string `json:"part"`
	Clause string `json:"clause"`
	Status Status `json:"status"`
	// Why is why the clause was skipped.
	Why      string    `json:"why,omitempty"`
	Failures []Failure `json:"failures,omitempty"`
}

// Failure is one difference between what a clause promises and what the host did.
type Failure struct {
	Expected string `json:"expected,omitempty"`
	Seen     string `json:"seen"`
	// Code is the number of the system's error, 0 for none.
	Code uint32 `json:"code,omitempty"`
}

// Add counts an outcome.
func (r *Result) Add(o Outcome) {
	switch o.Status {
	case StatusPassed:
		r.Passed++
	case StatusFailed:
		r.Failed++
	case StatusSkipped:
		r.Skipped++
	}
	r.Clauses = append(r.Clauses, o)
}

// Lines returns the outcome for people. Text of a machine is not escaped.
func (o Outcome) Lines() []string {
	first := fmt.Sprintf("%-7s  %s: %s", o.Status, o.Part, o.Clause)
	if o.Why != "" {
		first += " (" + o.Why + ")"
	}
	lines := []string{first}
	for _, f := range o.Failures {
		line := fmt.Sprintf("         expected %s, seen %s", cmp.Or(f.Expected, "no error"), f.Seen)
		if f.Code != 0 {
			line += fmt.Sprintf(" (error %d)", f.Code)
		}
		lines = append(lines, line)
	}
	return lines
}

// Summary returns the counts in one line.
func (r Result) Summary() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", r.Passed, r.Failed, r.Skipped)
}
