package cli

import (
	"context"
	"io"
)

// Reader returns what r reads until the context ends. A read that blocks in the operating system then, as of a pipe or
// a terminal, is left behind.
func Reader(ctx context.Context, r io.Reader) io.Reader {
	in, out := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = out.CloseWithError(context.Cause(ctx)) }) // which never fails
	go func() {
		defer stop()
		_, err := io.Copy(out, r)
		_ = out.CloseWithError(err)
	}()
	return in
}
