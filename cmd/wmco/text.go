package main

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"wmco/bundle"
)

// short is a digest for people.
func short(d bundle.Digest) string { return cmp.Or(d.Short(), "-") }

// since is how long ago something was, as kubectl writes ages.
func since(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return formatAge(now.Sub(t))
}

// formatAge is a duration as kubectl writes it: 45s, 5m, 2d1h.
func formatAge(d time.Duration) string { return duration.HumanDuration(max(d, 0)) }

// pointInTime is a time in a message of the operator, with the word before it.
var pointInTime = regexp.MustCompile(`\b(since|until|at) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)`)

// relativeTimes replaces the times in a message by durations: "for 5m", "for another 30s", "in 4m", "4m ago".
func relativeTimes(now time.Time, text string) string {
	return pointInTime.ReplaceAllStringFunc(text, func(found string) string {
		m := pointInTime.FindStringSubmatch(found)
		at, err := time.Parse(time.RFC3339, m[2])
		switch {
		case err != nil:
			return found
		case m[1] == "since":
			return "for " + since(now, at)
		case m[1] == "until":
			return "for another " + formatAge(at.Sub(now))
		case at.Before(now):
			return formatAge(now.Sub(at)) + " ago"
		}
		return "in " + formatAge(at.Sub(now))
	})
}

// joinBy lists texts of values.
func joinBy[E any](list []E, text func(E) string, separator string) string {
	var parts []string
	for _, e := range list {
		parts = append(parts, text(e))
	}
	return strings.Join(parts, separator)
}
