// Package seed gives tests their random choices so that a failure can be repeated: each test logs its seed, and
// WMCO_SEED takes it back.
package seed

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Variable is the environment variable whose number is the seed of all tests of a run. Without it, each has another
// one.
const Variable = "WMCO_SEED"

// New returns the random choices of a test, and logs how to make the same ones again.
func New(t testing.TB) *rand.Rand {
	t.Helper()
	number := uint64(rand.Uint32()) //nolint:gosec // no secret; short enough to be typed
	if text := os.Getenv(Variable); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s=%q is not a number", Variable, text)
		}
		number = given
	}
	t.Logf("%s=%d", Variable, number)
	return rand.New(rand.NewPCG(number, 0)) //nolint:gosec // no secret
}
