package main

import (
	"cmp"
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

// joinBy lists texts of values.
func joinBy[E any](list []E, text func(E) string, separator string) string {
	var parts []string
	for _, e := range list {
		parts = append(parts, text(e))
	}
	return strings.Join(parts, separator)
}
