package main

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"wmco/applier/session"
	"wmco/internal/cli"
)

// idleLimit is how long a session waits for the next command: a caller that has lost its power hangs up without a word, and
// those that live keep connections for less.
const idleLimit = 15 * time.Minute

func serveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the commands that come on stdin, one after another",
		Long: `For callers that keep a connection: other commands of this program, each with its stdin, run in this process and do what
they do in one of their own. It ends with stdin, or when nothing comes for a quarter of an hour. docs/node-program.md tells the frames in which words and streams come and go.` +
			cli.ExitHelp("0    stdin ended, or nothing came any more", "2    what came on stdin is no session", "130  interrupted"),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context()) },
	}
}

// serve ends when stdin does. An interrupt, and an end for want of commands, wait for the command that runs, but not for stdin:
// nobody can end a read of that.
func (a *app) serve(ctx context.Context) error {
	var running sync.Mutex
	idle := time.NewTimer(a.idle)
	defer idle.Stop()
	one := func(ctx context.Context, c session.Command) int {
		running.Lock()
		defer running.Unlock()
		idle.Stop()
		defer idle.Reset(a.idle)
		return a.served(ctx, c)
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Serve(ctx, a.stdin, a.stdout, one) }()
	select {
	case err := <-ended:
		if err != nil {
			return &cli.ExitError{Status: cli.ExitUsage, Err: err}
		}
		return nil
	case <-idle.C:
		running.Lock() // never to be released: no other command begins
		return nil
	case <-ctx.Done():
		running.Lock() // never to be released: no other command begins
		return ctx.Err()
	}
}

// served runs one command as a process of its own would: nothing that an earlier one learned of the machine is believed.
func (a *app) served(ctx context.Context, c session.Command) int {
	one := *a
	one.stdin, one.stdout, one.stderr = c.Stdin, c.Stdout, c.Stderr
	defer func() {
		if host, ok := one.host.(io.Closer); ok {
			_ = host.Close() // every operation on it has ended
		}
	}()
	return run(ctx, &one, c.Words)
}
