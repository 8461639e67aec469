// Command tested writes docs/tested.md from the results in golden/real.
//
//	tested golden/real docs/tested.md
package main

import (
	"fmt"
	"os"

	"wmco/internal/build/tested"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tested:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: tested FOLDER FILE")
	}
	results, err := tested.ReadResults(args[0])
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], []byte(tested.ResultsPage(results)), 0o644)
}
