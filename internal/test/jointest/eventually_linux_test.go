package jointest_test

import (
	"sync/atomic"
	"testing"

	"wmco/internal/test/testenv"
)

// looks is how many looks of eventually are under way: one may hold another one.
var looks atomic.Int32

// notYet ends a look of eventually at something that is not there.
type notYet struct{}

func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	wait := testenv.Eventually
	if memoryOf(t) != nil {
		wait = eventuallyInMemory
	}
	must(t, wait(t.Context(), what, func() (is bool) {
		looks.Add(1)
		defer func() {
			looks.Add(-1)
			if x := recover(); x != nil && x != any(notYet{}) {
				panic(x)
			}
		}()
		return done()
	}))
}
