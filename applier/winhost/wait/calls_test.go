package wait

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestACallThatHangs: it is given up after the limit, and no other one is made before it has returned.
func TestACallThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCalls("the Host Networking Service", 30*time.Second)
		begun, made := time.Now(), 0
		hangs := func() (int, error) {
			made++
			time.Sleep(10 * time.Minute)
			return 1, nil
		}
		answers := func() (int, error) {
			made++
			return 2, nil
		}
		_, first := Call(c, hangs)
		if passed := time.Since(begun); !errors.Is(first, ErrTooLong) || passed != 30*time.Second {
			t.Errorf("after %s: %v", passed, first)
		}
		for range 3 {
			if _, err := Call(c, answers); err == nil || err.Error() != first.Error() {
				t.Errorf("while it hangs: %v, want %v", err, first)
			}
		}
		if made != 1 {
			t.Errorf("%d calls were made", made)
		}
		time.Sleep(10 * time.Minute)
		if got, err := Call(c, answers); got != 2 || err != nil {
			t.Errorf("after it has returned: %d, %v", got, err)
		}
	})
}

func TestACallThatTakesLongerThanOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, broken := NewCalls("DISM", 30*time.Second), errors.New("broken")
		if err := c.Do(15*time.Minute, func() error { time.Sleep(10 * time.Minute); return broken }); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	})
}
