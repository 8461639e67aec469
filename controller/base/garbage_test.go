package base

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// TestGarbageIsCollectedEarlier, unless the environment of the process says when.
func TestGarbageIsCollectedEarlier(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "off")
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	for _, c := range []struct {
		environment string
		want        int
	}{{"", garbagePercent}, {"70", 100}} {
		t.Setenv("GOGC", c.environment)
		debug.SetGCPercent(100)
		LimitMemory(t.Context())
		if got := debug.SetGCPercent(100); got != c.want {
			t.Errorf("GOGC=%s: %d percent, want %d", c.environment, got, c.want)
		}
	}
}

// TestMemoryIsReturned: what was in use for a moment is given back at once. There is no limit when the operator has ended.
func TestMemoryIsReturned(t *testing.T) {
	const size = 128 << 20
	idle := func() uint64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	fill := func() {
		parts := make([][]byte, 0, size>>16)
		for range cap(parts) {
			parts = append(parts, make([]byte, 1<<16))
		}
		runtime.KeepAlive(parts)
	}
	t.Setenv("GOGC", "100")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	LimitMemory(ctx)
	fill()
	runtime.GC()
	for deadline := time.Now().Add(20 * time.Second); idle() > 2*spareMemory; time.Sleep(memoryPeriod) {
		if time.Now().After(deadline) {
			t.Fatalf("%d MiB are not in use and not given back", idle()>>20)
		}
	}
	stop()
	for deadline := time.Now().Add(20 * time.Second); debug.SetMemoryLimit(-1) != math.MaxInt64; time.Sleep(memoryPeriod) {
		if time.Now().After(deadline) {
			t.Fatal("the limit stays")
		}
	}
}

// countCollections returns how many collections there are while some garbage is made, a tenth of what GOGC allows at most.
func countCollections(pieces int) uint32 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var garbage []byte
	for range pieces {
		garbage = make([]byte, 10<<10)
		time.Sleep(2 * time.Millisecond)
	}
	runtime.KeepAlive(garbage)
	runtime.ReadMemStats(&after)
	return after.NumGC - before.NumGC
}

// fillMemory returns so many parts of 64 KiB.
func fillMemory(parts int) [][]byte {
	all := make([][]byte, parts)
	for i := range all {
		all[i] = make([]byte, 1<<16)
	}
	return all
}

// TestTheLimitCollectsNoGarbage: it is above what is allocated until a collection anyway, also where much is in use.
func TestTheLimitCollectsNoGarbage(t *testing.T) {
	t.Setenv("GOGC", "100")
	before := debug.SetGCPercent(garbagePercent)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	live := fillMemory(6 << 10)
	LimitMemory(t.Context())
	runtime.GC()
	if n := countCollections(1 << 10); n > 0 {
		t.Errorf("%d collections, want none", n)
	}
	runtime.KeepAlive(live)
}

// TestMemoryIsReturnedWithoutCollections: a limit below what is kept would collect garbage until all of it is given back.
func TestMemoryIsReturnedWithoutCollections(t *testing.T) {
	t.Setenv("GOGC", "100")
	before := debug.SetGCPercent(garbagePercent)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	live, once := fillMemory(4<<10), fillMemory(4<<10)
	runtime.KeepAlive(once)
	runtime.GC()
	LimitMemory(t.Context())
	if n := countCollections(1 << 9); n > 0 {
		t.Errorf("%d collections, want none", n)
	}
	runtime.KeepAlive(live)
}
