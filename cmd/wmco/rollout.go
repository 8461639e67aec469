package main

import (
	"fmt"
	"strings"
	"time"

	"wmco/bundle"
	"wmco/controller/fleet"
	"wmco/controller/rollout/plan"
	"wmco/internal/cli"
)

// printRollout prints where the rollout is: one line, and one for each group of nodes that does or waits for the same.
// Nothing is printed if there is no such node.
func printRollout(a app, r fleet.Rollout) {
	if r.Note != "" {
		cli.Printf(a.stderr, "%s\n", r.Note)
	}
	groups := r.Left()
	if len(groups) == 0 {
		return
	}
	columns := terminalColumns(a.stdout)
	cli.Printf(a.stdout, "%s\n", hangingText("rollout: ", relativeTimes(a.now(), strings.TrimPrefix(rolloutLine(r), "rollout: ")), columns))
	for _, g := range groups {
		cli.Printf(a.stdout, "%s\n", hangingText(fmt.Sprintf("  %-8s  %s  ", g.Phase, fewNames(g.Names)), relativeTimes(a.now(), g.Message), columns))
	}
	cli.Printf(a.stdout, "\n")
}

// rolloutLine is the rollout in one line.
func rolloutLine(r fleet.Rollout) string {
	line := "rollout: " + r.Message
	if r.TakesSeconds > 0 {
		line += "; " + estimate(r.Takes(), r.Unmeasured) + " to go"
	}
	return line
}

// estimate is how long something takes, by the turns before.
func estimate(d time.Duration, unmeasured []bundle.Impact) string {
	if len(unmeasured) > 0 {
		return "at least " + formatAge(d) + " (no update with impact " + joinBy(unmeasured, func(i bundle.Impact) string {
			return string(i)
		}, " or ") + " is known)"
	}
	return "about " + formatAge(d)
}

// fewNames names the first nodes of a list.
func fewNames(names []string) string {
	return bundle.JoinFirst(names, 3, ", ", bundle.AndOthers)
}

// turnsOf returns for the table where each node is in the rollout: its phase, or what it waits for.
func turnsOf(r fleet.Rollout) map[string]string {
	phases := map[string]string{}
	for _, s := range r.Nodes {
		phases[s.Node] = string(s.Phase)
		if s.Phase == plan.PhaseWaiting {
			phases[s.Node] = string(s.Reason)
		}
	}
	return phases
}

func turnName(i int) string {
	if i == 0 {
		return "last update"
	}
	return "before it"
}

// turnText is a turn in one line.
func turnText(now time.Time, t plan.Turn) string {
	who := ""
	if t.Canary {
		who = ", canary"
	}
	line := fmt.Sprintf("%s ago  %s, impact %s%s", since(now, t.Begun), t.Bundle.Short(), t.Impact, who)
	if t.Result != "" {
		line += ", " + string(t.Result)
	}
	if !t.Ended.IsZero() {
		line += " after " + t.Ended.Sub(t.Begun).Round(time.Second).String()
	}
	if !t.Confirmed.IsZero() {
		line += ", confirmed " + since(now, t.Confirmed) + " ago"
	}
	return line
}
