// Command modules reports which pinned modules the module proxy serves. The Makefile calls it.
//
//	modules have [--tests] DIR PACKAGE...   downloads the modules that the packages import
//	modules pins FILE                       prints the pins that are not served or listed; writes all pins to FILE
//
// Exit status of have: 0 all available, 3 a module cannot be downloaded (stdout has its name and the reason), 1 any other
// error. Exit status of pins: 0 all are served, 1 some are not.
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

const usage = "usage: modules have [--tests] DIR PACKAGE... | modules pins FILE"

const exitRefused = 3

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
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

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	tests := flags.Bool("tests", false, "include the imports of the tests")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch {
	case args[0] == "have" && flags.NArg() > 1:
		return modules.Have(ctx, modules.Selection{Dir: flags.Arg(0), Packages: flags.Args()[1:], Tests: *tests, Progress: os.Stderr})
	case args[0] == "pins" && flags.NArg() == 1:
		return modules.ReportPins(ctx, ".", os.Stdout, flags.Arg(0))
	}
	return errors.New(usage)
}
