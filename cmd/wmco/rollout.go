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
	line := strings.TrimPrefix(rolloutLine(r), "rollout: ")
	counts, cause, isStopped := strings.Cut(line, "; stopped: ")
	cause, fix, _ := strings.Cut(cause, "; fix: ")
	cli.Printf(a.stdout, "%s\n", hangingText("rollout: ", relativeTimes(a.now(), counts), columns))
	if isStopped {
		cli.Printf(a.stdout, "%s\n", hangingText("  stopped: ", cause, columns))
		cli.Printf(a.stdout, "%s\n", hangingText("  fix: ", fix, columns))
	}
	for _, g := range groups {
		if strings.Contains(counts, fewNames(g.Names)+": "+g.Message) || isStopped && strings.Contains("stopped: "+cause, g.Message) {
			continue // the lines above have it
		}
		cli.Printf(a.stdout, "%s\n", hangingText(fmt.Sprintf("  %-8s  %s: ", g.Phase, fewNames(g.Names)), relativeTimes(a.now(), g.Message), columns))
	}
	cli.Printf(a.stdout, "\n")
}

// rolloutLine is the rollout in one line.
func rolloutLine(r fleet.Rollout) string {
	line := "rollout: " + r.Message
	if r.TakesSeconds > 0 {
		line += "; " + estimate(r.Takes(), r.Unmeasured)
	}
	return line
}

// estimate is how long something takes, by the turns before.
func estimate(d time.Duration, unmeasured []bundle.Impact) string {
	if len(unmeasured) > 0 {
		return "at least " + formatAge(d) + " left (no measured update with impact " + joinBy(unmeasured, func(i bundle.Impact) string {
			return string(i)
		}, " or ") + " yet)"
	}
	return "about " + formatAge(d) + " left"
}

// fewNames names the first nodes of a list.
func fewNames(names []string) string {
	return bundle.JoinFirst(names, 3, ", ", bundle.AndOthers)
}

// turnsOf returns for the table where each node is in the rollout: that it has the newest bundle, or what it does or
// waits for. The words differ from those of the states, which are about the published bundle.
func turnsOf(r fleet.Rollout) map[string]string {
	turns := map[string]string{}
	for _, s := range r.Nodes {
		switch turns[s.Node] = string(s.Reason); {
		case s.Phase == plan.PhaseUpdated:
			turns[s.Node] = "Done"
		case s.Reason == plan.ReasonStep:
			turns[s.Node] = "InProgress"
		}
	}
	return turns
}

func turnName(i int) string {
	if i == 0 {
		return "last update"
	}
	return "earlier"
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
