package wait

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestUntil(t *testing.T) {
	broken := errors.New("broken")
	asked := 0
	third := func() (bool, error) { asked++; return asked == 3, nil }
	if err := PollUntil(t.Context(), 2*time.Minute, time.Millisecond, third); err != nil || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	if err := PollUntil(t.Context(), time.Minute, time.Minute, func() (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	never := func() (bool, error) { return false, nil }
	if err := PollUntil(t.Context(), time.Millisecond, time.Minute, never); !errors.Is(err, ErrTooLong) {
		t.Errorf("after the limit: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := PollUntil(ended, time.Minute, time.Minute, never); !errors.Is(err, context.Canceled) {
		t.Errorf("after the context has ended: %v", err)
	}
}
