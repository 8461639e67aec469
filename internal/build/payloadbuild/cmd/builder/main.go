// Command builder builds, checks and compares the Windows executables that we ship. The Makefile calls it.
//
// Exit status: 0 done, 3 executables are missing because modules cannot be downloaded, 1 any other error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"wmco/internal/build/payloadbuild"
)

const usage = "usage: builder build|check|newer [--version VERSION] [--sources URL] [--only NAME,...] [--out DIR] [--caches DIR]"

const exitNotServed = 3

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "builder:", err)
		if errors.Is(err, payloadbuild.ErrNotServed) {
			os.Exit(exitNotServed)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s", usage)
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	o := payloadbuild.Options{Root: root, Progress: os.Stderr}
	flags := flag.NewFlagSet("builder", flag.ContinueOnError)
	flags.StringVar(&o.Version, "version", "devel", "version of the executables of this module")
	flags.StringVar(&o.Sources, "sources", "", "URL below which the files of the release can be read")
	flags.StringVar(&o.Out, "out", filepath.Join(root, "bin"), "folder of the results")
	flags.StringVar(&o.Caches, "caches", "", "folder for the caches of Go (default: those of the user)")
	only := flags.String("only", "", "executables or components, separated by commas (default: all)")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	o.Only = strings.FieldsFunc(*only, func(r rune) bool { return r == ',' || r == ' ' })
	switch args[0] {
	case "build":
		return payloadbuild.Build(ctx, o)
	case "check":
		return payloadbuild.Check(ctx, o)
	case "newer":
		payloadbuild.Newer(ctx, o)
		return nil
	}
	return fmt.Errorf("%s", usage)
}
