package services

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestAStartThatFailsForAMomentIsTriedAgain steps the clock of a bubble.
func TestAStartThatFailsForAMomentIsTriedAgain(t *testing.T) {
	tests := map[string]struct {
		code  syscall.Errno
		takes time.Duration
		fails time.Duration
		tries int // 0 is any number
		ok    bool
	}{
		"a program that a scanner has open":                            {errSharingViolation, 0, 20 * time.Second, 21, true},
		"a program that another one has open for good":                 {errSharingViolation, 0, time.Hour, 0, false},
		"a service control manager that another program has locked":    {errDatabaseLocked, 0, 3 * time.Second, 4, true},
		"a program that does not connect in time on a busy host":       {errRequestTimeout, 30 * time.Second, 30 * time.Second, 2, true},
		"a program that never connects":                                {errRequestTimeout, 30 * time.Second, time.Hour, 2, false},
		"a program that ends at once, each time":                       {errRequestTimeout, 0, time.Hour, 2, false},
		"a service that is disabled: ERROR_SERVICE_DISABLED":           {1058, 0, time.Hour, 1, false},
		"a service whose program does not exist: ERROR_FILE_NOT_FOUND": {2, 0, time.Hour, 1, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, tries := time.Now(), 0
				err := retryStart(t.Context(), func() error {
					tries++
					if time.Since(begun) >= tt.fails {
						return nil
					}
					time.Sleep(tt.takes)
					return tt.code
				})
				if tt.tries != 0 && tries != tt.tries || (err == nil) != tt.ok || !tt.ok && !errors.Is(err, tt.code) {
					t.Errorf("%d tries: %v", tries, err)
				}
			})
		})
	}
}
