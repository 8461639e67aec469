package remote

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"wmco/applier/protocol"
)

// The most that a host may answer. A bundle of a thousand entries makes an observation of 0.2 MB with six thousand
// values, and as many events.
const (
	// maxAnswer and maxLine are the sizes of an answer and of an event, in bytes.
	maxAnswer = 8 << 20
	maxLine   = 4 << 20
	// maxEvents is the size of all events of a run, in bytes.
	maxEvents = 64 << 20
	// maxValues is the number of values in an answer or event: an empty element takes two bytes of it, and a hundred in
	// memory.
	maxValues = 100_000
	// maxDepth is how deep values are nested.
	maxDepth = 16
	// headSize is how much of an unreadable answer an error shows, in bytes.
	headSize = 200
)

// byteOrderMark may stand before what a Windows program prints (UTF-8).
const byteOrderMark = "\ufeff"

// errTooMuch means that a host answers more than any agent does.
var errTooMuch = errors.New("the host sends too much")

// checkSize refuses JSON that takes much more memory than its text. What is no JSON is left to the decoder.
func checkSize(data []byte) error {
	values, depth, text := 0, 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			depth++
			values++
		case c == '}' || c == ']':
			depth--
		case c == ',':
			values++
		}
		if values > maxValues || depth > maxDepth {
			return fmt.Errorf("%w: more than %d values, or more than %d levels", errTooMuch, maxValues, maxDepth)
		}
	}
	return nil
}

// answer is everything that a command prints.
type answer struct{ data []byte }

// read implements output.
func (a *answer) read(from io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(from, maxAnswer+1))
	if len(data) > maxAnswer {
		return fmt.Errorf("%w: more than %d bytes", errTooMuch, maxAnswer)
	}
	if err == nil {
		err = checkSize(data)
	}
	if !errors.Is(err, errTooMuch) {
		a.data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	}
	return err
}

// answered implements output.
func (a *answer) answered() bool { return isJSON(a.data) }

// isJSON reports whether output is the agent's. Shells print greetings, and that there is no such program.
func isJSON(data []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) }

// beginningOf returns the beginning of an answer, for an error.
func beginningOf(data []byte) string {
	return strings.ToValidUTF8(string(data[:min(headSize, len(data))]), "?")
}

// events are the lines that apply prints.
type events struct {
	tell func(protocol.Event)
	// result is the last event, if it came.
	result protocol.Event
	// bad is the first line that is no event, and problem is why.
	bad     []byte
	problem error
	any     bool
}

// answered implements output.
func (e *events) answered() bool { return e.any }

// read implements output. A line that is no event does not end it: the agent goes on applying.
func (e *events) read(from io.Reader) error {
	all := &io.LimitedReader{R: from, N: maxEvents}
	lines := bufio.NewScanner(all)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for lines.Scan() {
		if err := checkSize(lines.Bytes()); err != nil {
			return err
		}
		e.addLine(lines.Bytes())
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("%w: a line of more than %d bytes", errTooMuch, maxLine)
	case err != nil:
		return err
	case all.N == 0:
		return fmt.Errorf("%w: events of more than %d bytes", errTooMuch, maxEvents)
	}
	return nil
}

func (e *events) addLine(line []byte) {
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte(byteOrderMark)))
	if len(line) == 0 {
		return
	}
	e.any = e.any || isJSON(line)
	event, err := protocol.DecodeEvent(line)
	if err != nil {
		if e.problem == nil {
			e.bad, e.problem = bytes.Clone(line[:min(headSize, len(line))]), err
		}
		return
	}
	if event.Event == protocol.EventResult {
		e.result = event
	}
	e.tell(event)
}
