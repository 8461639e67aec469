package count

import "testing"

func TestOf(t *testing.T) {
	for n, want := range map[int]string{0: "0 errors", 1: "1 error", 2: "2 errors"} {
		if got := Of(n, "error"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
