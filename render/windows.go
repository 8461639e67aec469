package render

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"wmco/bundle"
)

// RolloutWindow is a time that comes again and again, in which changes may begin on nodes. One that has begun goes on
// when it is over.
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

// parseSchedule reads when the window opens. An expression that names its own time zone is refused: there would be two.
func (w RolloutWindow) parseSchedule() (cron.Schedule, error) {
	if strings.HasPrefix(w.Start, "@") || strings.Contains(w.Start, "=") {
		return nil, fmt.Errorf("%q is not a cron expression of five fields", w.Start)
	}
	switch {
	case w.TimeZone == "Local":
		return nil, errors.New("it is that of the operator's container: name a time zone")
	case strings.ContainsAny(w.TimeZone, " \t"):
		return nil, errors.New("it is not the name of a time zone")
	}
	schedule, err := cron.ParseStandard("CRON_TZ=" + cmp.Or(w.TimeZone, "UTC") + " " + w.Start)
	if err != nil {
		return nil, err
	}
	spec, _ := schedule.(*cron.SpecSchedule) // what an expression without @ is
	zone := spec.Location
	spec.Location = time.UTC
	return wallClock{spec, zone}, nil
}

// wallClock is a schedule by the clock on the wall of a time zone. Where that clock is set, each time is once: a time
// that is skipped is the moment at which it is set, and of a time that is there twice it is the first. By itself cron
// never comes to a time that is skipped, and twice to one that is there twice.
type wallClock struct {
	// schedule is in UTC, whose clock is never set.
	schedule cron.Schedule
	zone     *time.Location
}

// Next implements cron.Schedule.
func (w wallClock) Next(now time.Time) time.Time {
	wall := wallTime(now.In(w.zone))
	for {
		if wall = w.schedule.Next(wall); wall.IsZero() {
			return wall
		}
		if at := w.momentOf(wall); at.After(now) {
			return at
		}
	}
}

// wallTime returns the time in UTC that shows what the clock in the zone of another time shows.
func wallTime(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// momentOf returns the first moment at which the clock shows a time, or at which it skips it.
func (w wallClock) momentOf(wall time.Time) time.Time {
	day := 24 * time.Hour
	_, before := wall.Add(-day).In(w.zone).Zone()
	first := wall.Add(-time.Duration(before) * time.Second).In(w.zone)
	if wallTime(first).Equal(wall) {
		return first
	}
	// The clock was set since yesterday.
	_, after := wall.Add(day).In(w.zone).Zone()
	if second := wall.Add(-time.Duration(after) * time.Second).In(w.zone); wallTime(second).Equal(wall) {
		return second
	}
	set, _ := first.ZoneBounds()
	return set
}

// isFor reports whether changes of that impact wait for the window.
func (w RolloutWindow) isFor(i bundle.Impact) bool {
	return len(w.Impacts) == 0 && slices.Contains(windowImpacts(), i) || slices.Contains(w.Impacts, i)
}

// nextOpening returns when the window opens next; zero if it is open.
func (w RolloutWindow) nextOpening(now time.Time) time.Time {
	schedule, err := w.parseSchedule()
	length, lengthErr := time.ParseDuration(w.Duration)
	if err != nil || lengthErr != nil {
		return time.Time{} // the settings are checked when they are decoded
	}
	if !schedule.Next(now.Add(-length)).After(now) {
		return time.Time{}
	}
	return schedule.Next(now).UTC()
}

// NextStart returns when a change of that impact may begin on a node next; zero if it may now, or if no window is for
// this impact.
func (r RolloutSettings) NextStart(i bundle.Impact, now time.Time) time.Time {
	var first time.Time
	for _, w := range r.Windows {
		if !w.isFor(i) {
			continue
		}
		opens := w.nextOpening(now)
		if opens.IsZero() {
			return time.Time{}
		}
		if first.IsZero() || opens.Before(first) {
			first = opens
		}
	}
	return first
}

// checkWindows returns findings about the windows. One that never opens would keep its changes for ever.
func (r RolloutSettings) checkWindows() bundle.Findings {
	var findings bundle.Findings
	for i, w := range r.Windows {
		field := fmt.Sprintf("rollout.windows[%d].", i)
		if schedule, err := w.parseSchedule(); err != nil {
			findings = append(
				findings,
				invalidSetting(field+"start", "%q in time zone %q cannot be used: %v", w.Start, w.TimeZone, err),
			)
		} else if schedule.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
			findings = append(findings, invalidSetting(field+"start", "%q is never", w.Start))
		}
		if d, err := time.ParseDuration(w.Duration); err != nil || d < minWindow || d > maxWindow {
			findings = append(findings, invalidSetting(field+"duration", "%q is not a duration from 1m to 168h", w.Duration))
		}
		for _, impact := range w.Impacts {
			if !slices.Contains(windowImpacts(), impact) {
				findings = append(findings, invalidSetting(field+"impacts", "%q is neither restart nor drain nor reboot", impact))
			}
		}
	}
	return findings
}
