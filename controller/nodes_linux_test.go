package controller

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// parallel calls do for 0 to n-1, some at the same time.
func parallel(t testing.TB, workers, n int, do func(i int) error) {
	t.Helper()
	var all errgroup.Group
	all.SetLimit(workers)
	for i := range n {
		all.Go(func() error { return do(i) })
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
}

// loadAverage is that of the computer over the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(text))[0]
}
