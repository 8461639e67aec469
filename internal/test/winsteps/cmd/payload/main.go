//go:build windows

// Command payload runs steps on the Windows machine that it runs on, see hack/windows-steps. It changes the machine: it
// applies bundles, and the step cleanup removes them.
//
//	payload NODE STEP...
//
// Its folder is C:\wmco-steps, which hack/windows/payload fills. Each step prints what it does, and what cannot run where
// it is built for Wine (-X main.wine=yes).
//
// Exit status: 0 done; 1 a step failed; 2 usage.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// wine is "yes" in programs for Wine; the linker sets it.
var wine string //nolint:gochecknoglobals // the linker sets it

// step is one step. It fails with an error.
type step struct {
	name string
	run  func(context.Context, machine) error
}

func steps() []step {
	return []step{
		{"apply", applyFirst}, {"pull", pullImage}, {"container", runContainer}, {"logs", awaitRotation}, {"crash", crashService},
		{"exchange", exchangeAgents}, {"killed", killRuns}, {"rollback", rollBack}, {"cleanup", cleanUp},
	}
}

// limit of one step.
const limit = 20 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: payload NODE STEP...")
		os.Exit(2) //nolint:gocritic // nothing to stop yet
	}
	m := machine{node: os.Args[1], wine: wine == "yes"}
	for _, name := range os.Args[2:] {
		if err := runStep(ctx, m, name); err != nil {
			fmt.Fprintf(os.Stderr, "payload-%s: failed: %v\n", name, err)
			os.Exit(1)
		}
	}
}

func runStep(ctx context.Context, m machine, name string) error {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	for _, s := range steps() {
		if s.name != name {
			continue
		}
		m.step = name
		begin := time.Now()
		if err := s.run(ctx, m); err != nil {
			return err
		}
		m.say("done in %s", time.Since(begin).Round(time.Second))
		return nil
	}
	return fmt.Errorf("no step %q", name)
}
