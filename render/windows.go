package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"wmco/bundle"
)

// RolloutWindow is a time that comes again and again, in which changes may begin on nodes. One that has begun goes on when it is over.
type RolloutWindow struct {
	// Start is when it opens: a cron expression of five fields, such as "0 22 * * 6" for Saturdays at 22:00.
	Start string `json:"start"`
	// Duration is how long it stays open, such as 4h.
	Duration string `json:"duration"`
	// TimeZone is that of Start, by its name in the IANA database, such as Europe/Berlin; empty is UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// Impacts are those of the changes that wait for it: restart, drain and reboot; empty is all three.
	Impacts []bundle.Impact `json:"impacts,omitempty"`
}

const (
	minWindow = time.Minute
	maxWindow = 7 * 24 * time.Hour
)

// windowImpacts are the impacts of changes that can wait for a window. One without impact never does.
func windowImpacts() []bundle.Impact {
	return []bundle.Impact{bundle.ImpactRestart, bundle.ImpactDrain, bundle.ImpactReboot}
}

// schedule reads when the window opens. An expression that names its own time zone is refused: there would be two.
func (w RolloutWindow) schedule() (cron.Schedule, error) {
	if strings.HasPrefix(w.Start, "@") || strings.Contains(w.Start, "=") {
		return nil, fmt.Errorf("%q is not a cron expression of five fields", w.Start)
	}
	zone := w.TimeZone
	if zone == "" {
		zone = "UTC"
	}
	return cron.ParseStandard("CRON_TZ=" + zone + " " + w.Start)
}

// isFor reports whether changes of that impact wait for the window.
func (w RolloutWindow) isFor(i bundle.Impact) bool {
	return len(w.Impacts) == 0 && slices.Contains(windowImpacts(), i) || slices.Contains(w.Impacts, i)
}

// opens returns when the window opens next; zero if it is open.
func (w RolloutWindow) opens(now time.Time) time.Time {
	schedule, err := w.schedule()
	length, lengthErr := time.ParseDuration(w.Duration)
	if err != nil || lengthErr != nil {
		return time.Time{} // the settings are checked when they are decoded
	}
	if !schedule.Next(now.Add(-length)).After(now) {
		return time.Time{}
	}
	return schedule.Next(now).UTC()
}

// NextStart returns when a change of that impact may begin on a node next; zero if it may now, or if no window is for this impact.
func (r RolloutSettings) NextStart(i bundle.Impact, now time.Time) time.Time {
	var first time.Time
	for _, w := range r.Windows {
		if !w.isFor(i) {
			continue
		}
		opens := w.opens(now)
		if opens.IsZero() {
			return time.Time{}
		}
		if first.IsZero() || opens.Before(first) {
			first = opens
		}
	}
	return first
}

// checkWindows returns what is wrong with the windows. One that never opens would keep its changes for ever.
func (r RolloutSettings) checkWindows() bundle.Findings {
	var findings bundle.Findings
	for i, w := range r.Windows {
		field := fmt.Sprintf("rollout.windows[%d].", i)
		if schedule, err := w.schedule(); err != nil {
			findings = append(findings, invalid(field+"start", "%q in time zone %q cannot be used: %v", w.Start, w.TimeZone, err))
		} else if schedule.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
			findings = append(findings, invalid(field+"start", "%q is never", w.Start))
		}
		if d, err := time.ParseDuration(w.Duration); err != nil || d < minWindow || d > maxWindow {
			findings = append(findings, invalid(field+"duration", "%q is not a duration from 1m to 168h", w.Duration))
		}
		for _, impact := range w.Impacts {
			if !slices.Contains(windowImpacts(), impact) {
				findings = append(findings, invalid(field+"impacts", "%q is neither restart nor drain nor reboot", impact))
			}
		}
	}
	return findings
}
