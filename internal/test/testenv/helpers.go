package testenv

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Must ends the test at an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Await is Eventually, and ends the test where it fails.
func Await(t testing.TB, what string, done func() bool) {
	t.Helper()
	Must(t, Eventually(t.Context(), what, done))
}

// RunInBackground runs something until the end of the test.
func RunInBackground(t testing.TB, run func(ctx context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Number returns that of an environment variable: `make ci-full` does more than `make ci`.
func Number(t testing.TB, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	Must(t, err)
	return n
}

// LoadExample loads the example cluster of golden/clusters without its nodes, and more files and folders. Root is the
// folder of this module.
func (e *Environment) LoadExample(t testing.TB, root string, more ...string) {
	t.Helper()
	var paths []string
	for _, name := range append([]string{
		"golden/clusters/common", "golden/clusters/none/infrastructure.yaml", "golden/clusters/none/controllerconfig.yaml",
		"golden/clusters/none/machineconfigs.yaml",
	}, more...) {
		paths = append(paths, filepath.Join(root, filepath.FromSlash(name)))
	}
	e.Load(t, paths...)
}
