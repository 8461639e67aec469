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

// printRollout prints one line about the rollout, and one for each group of nodes that do or wait for the same. It prints
// nothing if all nodes are done.
func printRollout(a app, r fleet.Rollout) {
	if r.Note != "" {
		cli.Printf(a.stderr, "%s\n", r.Note)
	}
	groups := r.Left()
	if len(groups) == 0 {
		return
	}
	columns := terminalColumns(a.stdout)
	printText := func(lead, text string) {
		cli.Printf(a.stdout, "%s\n", hangingText(lead, relativeTimes(a.now(), text), columns))
	}
	counts, isStopped := strings.CutSuffix(r.Message, "; "+r.Stopped+"; fix: "+r.Fix)
	printText("rollout: ", counts+timeLeft(r))
	if isStopped {
		printText("  stopped: ", strings.TrimPrefix(r.Stopped, "stopped: "))
		printText("  fix: ", r.Fix)
	}
	for _, g := range groups {
		if strings.Contains(counts, fewNames(g.Names)+": "+g.Message) || isStopped && strings.Contains(r.Stopped, g.Message) {
			continue // the lines above have it
		}
		printText(fmt.Sprintf("  %-8s  %s: ", g.Phase, fewNames(g.Names)), g.Message)
	}
	cli.Printf(a.stdout, "\n")
}

// timeLeft is the estimate at the end of a line; empty if there is none.
func timeLeft(r fleet.Rollout) string {
	if r.TakesSeconds == 0 {
		return ""
	}
	return "; " + estimate(r.Takes(), r.Unmeasured)
}

// estimate is the remaining time, from earlier updates.
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

// turnsOf returns the column ROLLOUT of the table: Done for a node that the rollout has finished, otherwise what it does or
// waits for. The states are about the published bundle instead.
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
