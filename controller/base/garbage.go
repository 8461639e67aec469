package base

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// garbagePercent is how much garbage there may be beside what is in use before it is collected, in percent. Go's default is 100: an operator of a large
// fleet would have its Nodes in memory twice. With 25 it collects four times as often, which is little beside all else that it does.
const garbagePercent = 25

const (
	// memoryPeriod is how often it is looked at how much memory is needed.
	memoryPeriod = 250 * time.Millisecond
	// spareMemory is how much may be kept beside what is needed until the next collection, in bytes, and sparePart the part of what is needed that may be
	// kept besides: Go's runtime keeps away from a limit by 3 percent of it.
	spareMemory = 8 << 20
	sparePart   = 16
)

// LimitMemory has this process collect garbage earlier, and give memory that it does not need back to the system, until the context ends. Its environment
// may say otherwise (GOGC, GOMEMLIMIT; pkg.go.dev/runtime).
func LimitMemory(ctx context.Context) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		go returnMemory(ctx)
	}
}

// returnMemory gives back what is not needed. Go keeps the memory of a moment in which much was in use, such as a rendering for all nodes, and gives it
// back within minutes; what is above 95 percent of a limit it gives back at once (runtime/mgcscavenge.go). The limit follows what is in use. It is never
// below what is kept, because Go would collect garbage until that is given back (runtime/mgcpacer.go), so it goes down step by step.
func returnMemory(ctx context.Context) {
	const unlimited = math.MaxInt64
	defer debug.SetMemoryLimit(unlimited)
	tick := time.NewTicker(memoryPeriod)
	defer tick.Stop()
	var set int64
	for needs := newMemoryNeeds(); ; {
		needed, kept := needs.readNeeds()
		if limit := max(needed+needed/sparePart+spareMemory, kept); limit > set || set-limit > spareMemory/2 {
			debug.SetMemoryLimit(limit)
			set = limit
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// memoryNeeds reads how much memory the process needs until the next collection (pkg.go.dev/runtime/metrics).
type memoryNeeds []metrics.Sample

func newMemoryNeeds() memoryNeeds {
	return memoryNeeds{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}, {Name: "/gc/gogc:percent"},
		{Name: "/memory/classes/heap/objects:bytes"},
	}
}

// readNeeds returns in bytes what is in use and what is allocated until the next collection, together, and what the process keeps. When the collection comes
// follows from GOGC (pkg.go.dev/runtime/debug, SetGCPercent) and not from the goal that the runtime says, which the limit lowers: each limit would be
// lower than the one before.
func (m memoryNeeds) readNeeds() (needed, kept int64) {
	metrics.Read(m)
	of := func(i int) int64 { return int64(min(m[i].Value.Uint64(), 1<<40)) } //nolint:gosec // bounded
	live, scanned, percent := of(3), of(4)+of(5), min(of(6), 1000)
	goal := live + (live+scanned)*percent/100
	kept = of(0) - of(1)
	return kept - of(2) + max(goal-of(7), 0), kept
}
