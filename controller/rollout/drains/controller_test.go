package drains

import (
	"context"
	"testing"
)

func TestAnOperatorThatEndsWaitsForNoDrain(t *testing.T) {
	q := make(drainQueue, 1)
	q.addNode(t.Context(), "win-1")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	q.addNode(ctx, "win-2") // it returns
	if got := (<-q).Object; got != "win-1" || len(q) > 0 {
		t.Errorf("the queue has %s and %d more", got, len(q))
	}
}
