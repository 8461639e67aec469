// Command shell is what `oc adm must-gather` needs of an image beside /usr/bin/gather: it starts the containers with
// /bin/bash -c and a script, waits with sleep, flushes with sync, and copies what was gathered with tar (openshift/oc,
// pkg/cli/admin/mustgather and pkg/cli/rsync). The operator's image has no distribution, so this one static program is
// all of them, by its name.
//
//	bash -c SCRIPT          scripts of bash, by mvdan.cc/sh
//	sleep SECONDS|infinity
//	sync
//	tar -C DIR -c NAME...   to stdout
//
// The script also asks df, awk and sed how full the volume is. They are not there: it then prints that and goes on.
package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

const (
	exitUsage      = 2
	exitTerminated = 143
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, filepath.Base(os.Args[0]), os.Args[1:])
	var status interp.ExitStatus
	switch {
	case ctx.Err() != nil:
		os.Exit(exitTerminated)
	case err == nil:
	case errors.As(err, &status):
		os.Exit(int(status))
	default:
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(exitUsage)
	}
}

func run(ctx context.Context, name string, args []string) error {
	switch name {
	case "bash", "sh":
		return shell(ctx, args)
	case "sleep":
		return sleep(ctx, args)
	case "sync":
		syscall.Sync()
		return nil
	case "tar":
		return archive(os.Stdout, args)
	}
	return errors.New("call it bash, sh, sleep, sync or tar")
}

// shell runs a script. What it started in the background ends with it.
func shell(ctx context.Context, args []string) error {
	if len(args) < 2 || args[0] != "-c" {
		return errors.New("usage: bash -c SCRIPT [NAME [ARGUMENT...]]")
	}
	script, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(args[1]), "bash")
	if err != nil {
		return err
	}
	var parameters []string
	if len(args) > 3 {
		parameters = args[3:]
	}
	runner, err := interp.New(interp.StdIO(os.Stdin, os.Stdout, os.Stderr), interp.Params(append(
		[]string{"--"}, parameters...,
	)...), interp.CallHandler(untrapped))
	if err != nil {
		return err
	}
	return runner.Run(ctx, script)
}

// untrapped makes traps of signals do nothing: the interpreter knows none, and a signal ends the script.
func untrapped(_ context.Context, args []string) ([]string, error) {
	if args[0] == "trap" && args[len(args)-1] != "EXIT" && args[len(args)-1] != "ERR" {
		return []string{"true"}, nil
	}
	return args, nil
}

func sleep(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: sleep SECONDS|infinity")
	}
	var after <-chan time.Time
	if args[0] != "infinity" {
		d, err := time.ParseDuration(args[0] + "s")
		if err != nil {
			return fmt.Errorf("%q is no number of seconds", args[0])
		}
		after = time.After(d)
	}
	select {
	case <-after:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// archive writes files and folders as a tar archive.
func archive(w io.Writer, args []string) error {
	if len(args) == 1 && args[0] == "--version" {
		_, err := fmt.Fprintln(w, "tar of the Windows Machine Config Operator's image")
		return err
	}
	if len(args) < 4 || args[0] != "-C" || args[2] != "-c" || strings.HasPrefix(strings.Join(args[3:], " "), "-") {
		return errors.New("usage: tar -C DIR -c NAME [NAME]")
	}
	out := tar.NewWriter(w)
	for _, name := range args[3:] {
		if err := add(out, args[1], name); err != nil {
			return err
		}
	}
	return out.Close()
}

// add adds a file, or a folder with all that is in it. Other things than files and folders are left out: nothing makes
// them.
func add(out *tar.Writer, dir, name string) error {
	return filepath.WalkDir(filepath.Join(dir, name), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		header, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		// archive/tar rounds to whole seconds: up, a file is from the future, and tar warns about each where it is
		// unpacked at once.
		header.ModTime = header.ModTime.Truncate(time.Second)
		if header.Name, err = filepath.Rel(dir, path); err != nil {
			return err
		}
		if d.IsDir() {
			header.Name += "/"
			return out.WriteHeader(header)
		}
		return addFile(out, header, path)
	})
}

// addFile adds a file as long as it was when its folder was read: a log may still grow.
func addFile(out *tar.Writer, header *tar.Header, path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // only read from
	if err := out.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.CopyN(out, from, header.Size)
	return err
}
