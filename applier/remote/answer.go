package remote

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"wmco/applier"
)

const (
	// maxAnswer is the size limit of an answer, in bytes. An observation of a thousand actions has 0.2 MB.
	maxAnswer = 64 << 20
	// headSize is how much of an unreadable answer an error shows, in bytes.
	headSize = 200
)

// byteOrderMark may stand before what a Windows program prints (UTF-8).
const byteOrderMark = "\ufeff"

var errTooLong = errors.New("it is too long")

// answer is everything that a command prints.
type answer struct{ data []byte }

// read implements output.
func (a *answer) read(from io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(from, maxAnswer+1))
	if err == nil && len(data) > maxAnswer {
		err = errTooLong
	}
	a.data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	return err
}

// answered implements output.
func (a *answer) answered() bool { return isJSON(a.data) }

// isJSON reports whether output is the agent's. Shells print greetings, and that there is no such program.
func isJSON(data []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) }

// head returns the beginning of an answer, for an error.
func head(data []byte) string {
	return strings.ToValidUTF8(string(data[:min(headSize, len(data))]), "?")
}

// events are the lines that apply prints.
type events struct {
	tell func(applier.Event)
	// result is the last event, if it came.
	result applier.Event
	// bad is the first line that is no event, and problem is why.
	bad     []byte
	problem error
	any     bool
}

// answered implements output.
func (e *events) answered() bool { return e.any }

// read implements output. A line that is no event does not end it: the agent goes on applying.
func (e *events) read(from io.Reader) error {
	in := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > maxAnswer {
			return errTooLong
		}
		e.add(line)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (e *events) add(line []byte) {
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte(byteOrderMark)))
	if len(line) == 0 {
		return
	}
	e.any = e.any || isJSON(line)
	event, err := applier.DecodeEvent(line)
	if err != nil {
		if e.problem == nil {
			e.bad, e.problem = bytes.Clone(line), err
		}
		return
	}
	if event.Event == applier.EventResult {
		e.result = event
	}
	e.tell(event)
}
