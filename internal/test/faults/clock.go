package faults

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

const (
	// ahead and back are how far the clock is set with SkewedClock, in turns.
	ahead, back = time.Hour, 30 * time.Minute
	// setEvery is how often.
	setEvery = 2 * time.Second
)

// Now is the wall clock of the process that uses the network. With SkewedClock it differs from that of the computer. It
// has no monotonic reading, which a clock that was set would keep (pkg.go.dev/time, Monotonic Clocks): what subtracts
// such times from each other sees the clock being set.
func (n *Network) Now() time.Time {
	now := time.Now().Round(0)
	if !n.isFault(SkewedClock) {
		return now
	}
	begun, _ := n.begun.Load().(time.Time)
	times := int(time.Since(begun)/setEvery) + 1
	return now.Add(time.Duration((times+1)/2)*ahead - time.Duration(times/2)*back) //nolint:mnd // every second time
}

// BubbleClock is the clock of an operator in a bubble of testing/synctest. That it is not clock.RealClock has controllers use client-go's
// queues: controller-runtime's may leave a goroutine when they are shut down (priorityqueue, handleReadyItems before v0.25.1), which is a fault
// in a bubble.
type BubbleClock struct{ clock.RealClock }

// clockTick is how often a clock is moved on.
const clockTick = 10 * time.Millisecond

// NewClock returns a clock that goes on like that of this computer until the context ends, and that tests move on
// besides.
func NewClock(ctx context.Context) *clocktesting.FakeClock {
	begun := time.Now()
	c := clocktesting.NewFakeClock(begun)
	var passed time.Duration
	go moveOn(ctx, c, func() time.Duration {
		before := passed
		passed = time.Since(begun)
		return passed - before
	})
	return c
}

// MoveOn moves a clock on by a step in each hundredth of a second until the context ends. On a busy computer it moves
// on less.
func MoveOn(ctx context.Context, c *clocktesting.FakeClock, step time.Duration) {
	moveOn(ctx, c, func() time.Duration { return step })
}

func moveOn(ctx context.Context, c *clocktesting.FakeClock, step func() time.Duration) {
	every := time.NewTicker(clockTick)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			c.Step(step())
		}
	}
}
