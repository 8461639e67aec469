package cli

import (
	"context"
	"errors"
	"time"
)

// grace is how long an interrupted command may take to end. One that still waits then, for standard input,
// for a pipe to be opened or for an answer, changes nothing and is left behind: the program ends without it.
const grace = 500 * time.Millisecond

// settle is how long a command has after its orderly part to say how it ended.
const settle = 200 * time.Millisecond

// errInterrupted is the end of a command that is left behind.
var errInterrupted = errors.New("interrupted")

// endings is the key in a context of the lock of Orderly, a channel with room for the one who holds it.
type endings struct{}

// Orderly marks a command that ends in order after an interrupt from here on, however long it takes: it writes, or it
// changes a host. The command calls done when it has ended. Once an interrupted program ends, Orderly does not return:
// no change begins anymore. It is called at most once in a command.
func Orderly(ctx context.Context) (done func()) {
	lock, ok := ctx.Value(endings{}).(chan struct{})
	if !ok {
		return func() {}
	}
	lock <- struct{}{}
	return func() { <-lock }
}

// interruptible runs a command until it ends, or until the context has ended and the command is in nothing that has to
// end in order.
func interruptible(ctx context.Context, command func(context.Context) error) error {
	lock := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() { ended <- command(context.WithValue(ctx, endings{}, lock)) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	within := func(limit time.Duration) error {
		select {
		case err := <-ended:
			return err
		case <-time.After(limit):
			return errInterrupted
		}
	}
	if err := within(grace); !errors.Is(err, errInterrupted) {
		return err
	}
	lock <- struct{}{} // waits for orderly commands
	return within(settle)
}
