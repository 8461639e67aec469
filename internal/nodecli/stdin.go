package nodecli

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"wmco/bundle/archive"
	"wmco/internal/cli"
)

// textFlag is for callers behind a shell that treats stdin as text: PowerShell decodes what it passes to a program and
// encodes it again (learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_pipelines).
func textFlag(cmd *cobra.Command, text *bool) {
	cmd.Flags().BoolVar(text, "text", false, "stdin is base64 in lines (RFC 4648, padded), for shells that treat it as text")
}

// stdinSilence is how long stdin may bring nothing. While contents arrive the host is locked, and a connection whose
// other end is gone may stand for hours.
const stdinSilence = 2 * time.Minute

// bundleIn reads the bundle on stdin, until the context ends.
func (p Program) bundleIn(ctx context.Context, text bool) (*archive.Reader, error) { //nolint:revive // the value of a flag
	var in io.Reader = newPatient(ctx, p.Stdin, stdinSilence)
	if text {
		in = base64.NewDecoder(base64.StdEncoding, in) // which skips line ends
	}
	r, err := archive.NewReader(in)
	if err != nil {
		return nil, &cli.ExitError{Status: cli.ExitUsage, Err: fmt.Errorf("reading the bundle on stdin: %w", err)}
	}
	return r, nil
}

// patient reads from a reader that may never return, such as a pipe whose other end is gone. A read of a pipe in
// Windows has no deadline and cannot be ended, so it is left behind.
type patient struct {
	ended <-chan struct{}
	// cause returns why it has ended.
	cause  func() error
	limit  time.Duration
	chunks chan chunk
	// next asks for another chunk; there is one at a time.
	next chan struct{}
	rest []byte
	err  error
}

// chunk is what one Read returned.
type chunk struct {
	data []byte
	err  error
}

// newPatient returns a reader that ends with the context, and with io.ErrUnexpectedEOF when nothing has arrived for so long.
func newPatient(ctx context.Context, from io.Reader, limit time.Duration) *patient {
	p := &patient{ended: ctx.Done(), cause: func() error { return context.Cause(ctx) }, limit: limit, chunks: make(chan chunk, 1), next: make(chan struct{})}
	go func() {
		buffer := make([]byte, 64<<10)
		for {
			select {
			case <-p.ended:
				return
			case <-p.next:
			}
			n, err := from.Read(buffer)
			p.chunks <- chunk{buffer[:n], err}
		}
	}()
	return p
}

// Read implements io.Reader.
func (p *patient) Read(to []byte) (int, error) {
	if len(p.rest) == 0 && p.err == nil {
		p.wait()
	}
	n := copy(to, p.rest)
	p.rest = p.rest[n:]
	if n == 0 {
		return 0, p.err
	}
	return n, nil
}

// wait waits for the next chunk.
func (p *patient) wait() {
	select {
	case <-p.ended:
		p.err = p.cause()
		return
	case p.next <- struct{}{}:
	}
	silent := time.NewTimer(p.limit)
	defer silent.Stop()
	select {
	case <-p.ended:
		p.err = p.cause()
	case c := <-p.chunks:
		p.rest, p.err = c.data, c.err
	case <-silent.C:
		p.err = fmt.Errorf("nothing arrived for %s: %w", p.limit, io.ErrUnexpectedEOF)
	}
}
