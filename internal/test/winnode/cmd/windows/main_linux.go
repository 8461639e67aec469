// Command windows starts Windows under Wine, runs a command on Linux, and ends Windows when the command has ended:
//
//	windows COMMAND [ARGUMENT...]
//
// It sets two variables for the command: WINDOWS is a command line to which a Windows program and its arguments are to
// be appended, and DRIVE_C is the folder of the drive C:. WMCO_WINE is the folder that `make wine` installed.
//
// Exit status: that of the command; 1 if Windows does not start.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"wmco/internal/test/winetest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Getenv(winetest.Variable), os.Args[1:])
	var exit *exec.ExitError
	switch {
	case err == nil:
		return
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	}
	fmt.Fprintln(os.Stderr, "windows:", err)
	os.Exit(1)
}

func run(ctx context.Context, wine string, args []string) (err error) {
	if wine == "" || len(args) == 0 {
		return fmt.Errorf("usage: %s=FOLDER windows COMMAND [ARGUMENT...]", winetest.Variable)
	}
	p, err := winetest.Open(ctx, wine, winetest.NetworkAlone)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "WINDOWS="+strings.Join(p.CommandLine(`C:\`), " "), "DRIVE_C="+p.Path(`C:\`))
	return cmd.Run()
}
