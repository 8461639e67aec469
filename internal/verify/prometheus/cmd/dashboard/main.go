// Command dashboard draws the dashboard of a ConfigMap with the data of a file. `make generate` runs it.
//
//	dashboard DASHBOARD.yaml SAMPLES.txt PICTURE.svg
//
// Exit status: 0 done; 1 an error, such as a panel without data; 2 usage.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"wmco/internal/verify/prometheus"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: dashboard DASHBOARD.yaml SAMPLES.txt PICTURE.svg")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "dashboard:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dashboard, samples, to string) error {
	var picture bytes.Buffer
	if err := prometheus.Screen(ctx, &picture, dashboard, samples); err != nil {
		return err
	}
	return os.WriteFile(to, picture.Bytes(), 0o644)
}
