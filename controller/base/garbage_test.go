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

// TestMemoryIsReturned: what was in use for a moment is given back at once, without more collections, and without a limit when the operator has ended.
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
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before := m.NumGC
	time.Sleep(4 * memoryPeriod)
	if runtime.ReadMemStats(&m); m.NumGC > before+1 {
		t.Errorf("%d collections while nothing was allocated", m.NumGC-before)
	}
	stop()
	for deadline := time.Now().Add(20 * time.Second); debug.SetMemoryLimit(-1) != math.MaxInt64; time.Sleep(memoryPeriod) {
		if time.Now().After(deadline) {
			t.Fatal("the limit stays")
		}
	}
}
