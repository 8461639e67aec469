package gateway

import (
	"context"
	"testing"
	"testing/synctest"

	"wmco/gateway/signatures"
)

// TestFewProgramsVerifyAtOnce, and one whose pull has ended waits no longer.
func TestFewProgramsVerifyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, end := make(chan struct{}, 10), make(chan struct{})
		v := newVerification(func(context.Context, signatures.Question) (signatures.Answer, error) {
			running <- struct{}{}
			<-end
			return signatures.Answer{Accepted: true}, nil
		})
		ended, stop := context.WithCancel(t.Context())
		answers := make(chan error, 10)
		for range 4 {
			go func() { _, err := v.askInTurn(t.Context(), signatures.Question{}); answers <- err }()
		}
		synctest.Wait()
		if len(running) != maxVerifiers {
			t.Errorf("%d programs run at once", len(running))
		}
		go func() { _, err := v.askInTurn(ended, signatures.Question{}); answers <- err }()
		synctest.Wait()
		stop()
		if err := <-answers; err == nil {
			t.Error("a pull that has ended was answered")
		}
		close(end)
		for range 4 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if len(running) != 4 {
			t.Errorf("%d programs ran", len(running))
		}
	})
}
