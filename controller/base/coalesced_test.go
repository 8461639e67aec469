package base

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

// Whoever asks while a reading runs gets the next one, together with all others who do.
func TestReadingsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan *string)
		readings := 0
		s := &Coalesced[*string]{Source: func(context.Context) (*string, error) {
			readings++
			return <-release, nil
		}}
		first, second := new(string), new(string)
		var asking sync.WaitGroup
		ask := func(want *string) {
			asking.Go(func() {
				if got, err := s.Read(t.Context()); got != want || err != nil {
					t.Errorf("%p, %v, want %p", got, err, want)
				}
			})
			synctest.Wait()
		}
		ask(first)
		for range 20 {
			ask(second)
		}
		gone, cancel := context.WithCancel(t.Context())
		asking.Go(func() {
			if _, err := s.Read(gone); !errors.Is(err, context.Canceled) {
				t.Errorf("a caller that has gone got %v", err)
			}
		})
		synctest.Wait()
		cancel()
		release <- first
		release <- second
		asking.Wait()
		if readings != 2 {
			t.Errorf("%d readings for 22 callers", readings)
		}
		ask2 := make(chan struct{})
		go func() { defer close(ask2); _, _ = s.Read(t.Context()) }()
		release <- nil
		<-ask2
		if readings != 3 {
			t.Error("a caller after that got what was read before")
		}
	})
}
