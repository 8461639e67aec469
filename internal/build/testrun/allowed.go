package testrun

import (
	"fmt"
	"regexp"
	"strings"
)

// Allowed are the skips that do not fail a run.
type Allowed []*regexp.Regexp

// ParseAllowed reads a list of them: a regular expression for "PACKAGE TEST" in each line, a comment with the reason
// after " # ", and lines that begin with #. A line without a reason is an error.
func ParseAllowed(text string) (Allowed, error) {
	var all Allowed
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, why, _ := strings.Cut(line, " # ")
		if strings.TrimSpace(why) == "" {
			return nil, fmt.Errorf("line %d: no reason after \" # \"", i+1)
		}
		expression, err := regexp.Compile("^(?:" + strings.TrimSpace(pattern) + ")$")
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		all = append(all, expression)
	}
	return all, nil
}

func (a Allowed) allowsSkip(name testName) bool {
	for _, expression := range a {
		if expression.MatchString(name.pkg + " " + name.test) {
			return true
		}
	}
	return false
}
