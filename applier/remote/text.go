package remote

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
)

// PowerShell hands stdin on to programs as lines of text, in the code page of the machine: an archive does not survive it. A
// machine whose program cannot read the archive gets it in base64, after textFlag on the command line.
const textFlag = "--text"

// textLine is how many bytes go into one line of text.
const textLine = 3 << 10

// asText makes stdin text.
func asText(stdin func(context.Context, io.Writer) error) func(context.Context, io.Writer) error {
	return func(ctx context.Context, to io.Writer) error {
		lines := &lineWriter{to: to}
		encoder := base64.NewEncoder(base64.StdEncoding, lines)
		if err := stdin(ctx, encoder); err != nil {
			return err
		}
		return errors.Join(encoder.Close(), lines.end())
	}
}

// lineWriter breaks what is written into lines.
type lineWriter struct {
	to   io.Writer
	line []byte
}

// Write implements io.Writer.
func (w *lineWriter) Write(p []byte) (int, error) {
	const full = textLine / 3 * 4
	n := len(p)
	for len(p) > 0 {
		take := min(len(p), full-len(w.line))
		w.line, p = append(w.line, p[:take]...), p[take:]
		if len(w.line) == full {
			if err := w.end(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// end ends a line that was begun.
func (w *lineWriter) end() error {
	if len(w.line) == 0 {
		return nil
	}
	_, err := w.to.Write(append(w.line, '\n'))
	w.line = w.line[:0]
	return err
}
