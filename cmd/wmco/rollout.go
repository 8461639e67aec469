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

// timeLeft is what an estimate of the rest adds to a line; empty where there is none.
func timeLeft(r fleet.Rollout) string {
	if r.TakesSeconds == 0 {
		return ""
	}
	return "; " + estimate(r.Takes(), r.Unmeasured)
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
