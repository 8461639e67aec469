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
	// maxAnswer bounds what a command may print, in bytes. An observation of a thousand actions has 0.2 MB.
	maxAnswer = 64 << 20
	// headSize is how much of a strange answer an error tells, in bytes.
	headSize = 200
)

// byteOrderMark may stand before what a Windows program prints (UTF-8).
const byteOrderMark = "\ufeff"

// errTooLong says that an answer does not end.
var errTooLong = errors.New("it is too long")

// readAnswer reads everything that a command prints.
func readAnswer(from io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, maxAnswer+1))
	if err == nil && len(data) > maxAnswer {
		err = errTooLong
	}
	return bytes.TrimPrefix(data, []byte(byteOrderMark)), err
}

// isAnswer tells whether what was printed is ours: JSON. Shells may greet, and say that there is no such program.
func isAnswer(data []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) }

// head is the beginning of an answer for an error.
func head(data []byte) string {
	return strings.ToValidUTF8(string(data[:min(headSize, len(data))]), "?")
}

// events reads the lines of an apply.
type events struct {
	tell func(applier.Event)
	// result is the last event, if it came.
	result applier.Event
	// strange is the first line that is none of an apply, with what is wrong with it.
	strange []byte
	problem error
	// any tells that something of an answer came.
	any bool
}

// read reads to the end. A line that is no event does not stop it: the machine goes on applying.
func (e *events) read(from io.Reader) error {
	in := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > maxAnswer {
			return errTooLong
		}
		e.take(line)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (e *events) take(line []byte) {
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte(byteOrderMark)))
	if len(line) == 0 {
		return
	}
	e.any = e.any || isAnswer(line)
	event, err := applier.DecodeEvent(line)
	if err != nil {
		if e.problem == nil {
			e.strange, e.problem = bytes.Clone(line), err
		}
		return
	}
	if event.Event == applier.EventResult {
		e.result = event
	}
	e.tell(event)
}
