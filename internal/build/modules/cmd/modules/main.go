// Command modules downloads the modules that packages import. hack/optional and the Makefile call it.
//
//	modules [--tests] DIR PACKAGE...
//
// Exit status: 0 all are available, 3 a module cannot be downloaded (stdout has its name and the reason), 1 any other
// error, 2 usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"wmco/internal/build/modules"
)

const exitRefused = 3

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	tests := flag.Bool("tests", false, "include the imports of the tests")
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: modules [--tests] DIR PACKAGE...")
		os.Exit(2) //nolint:gocritic // nothing to stop yet
	}
	err := modules.Download(ctx, modules.Selection{Dir: flag.Arg(0), Packages: flag.Args()[1:], Tests: *tests, Progress: os.Stderr})
	var refused *modules.RefusedError
	switch {
	case errors.As(err, &refused):
		fmt.Println(refused)
		os.Exit(exitRefused)
	case err != nil:
		fmt.Fprintln(os.Stderr, "modules:", err)
		os.Exit(1)
	}
}
