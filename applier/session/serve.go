package session

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Command is one that was asked for.
type Command struct {
	// Words are without the program's name.
	Words  []string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// buffer is how much is read ahead, in bytes.
const buffer = 64 << 10

// Serve runs the commands that come in, one after another, until the stream ends. Run returns the exit status. An error
// means that the stream was cut, is no session, or that nobody takes the answers.
func Serve(ctx context.Context, in io.Reader, out io.Writer, run func(context.Context, Command) int) error {
	s := &server{in: frames{from: bufio.NewReaderSize(in, buffer)}, out: out}
	if err := send(out, kindHello, []byte(hello)); err != nil {
		return fmt.Errorf("beginning a session: %w", err)
	}
	for {
		err := s.one(ctx, run)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("serving a session: %w", err)
		}
	}
}

type server struct {
	in  frames
	out io.Writer
}

// one runs one command; io.EOF at the end of all.
func (s *server) one(ctx context.Context, run func(context.Context, Command) int) error {
	words, err := s.words()
	if err != nil {
		return err
	}
	in := &input{frames: &s.in}
	status := run(ctx, Command{Words: words, Stdin: in, Stdout: stream{s.out, kindStdout}, Stderr: stream{s.out, kindStderr}})
	if err := send(s.out, kindStatus, strconv.AppendInt(nil, int64(status), 10)); err != nil {
		return err
	}
	// What the command did not read is not for the next one.
	_, err = io.Copy(io.Discard, in)
	return err
}

func (s *server) words() ([]string, error) {
	k, err := s.in.next()
	if err != nil {
		return nil, err
	}
	if k != kindWords {
		return nil, fmt.Errorf("%w: %q stands where a command should begin", ErrMalformed, k)
	}
	data, err := s.in.all()
	if err != nil {
		return nil, err
	}
	var words []string
	if err := json.Unmarshal(data, &words); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("%w: a command without words", ErrMalformed)
	}
	return words, nil
}

// input is the stdin of a command.
type input struct {
	*frames
	over bool
}

// Read implements io.Reader. Without the frame that ends it, stdin was cut: io.ErrUnexpectedEOF.
func (i *input) Read(p []byte) (int, error) {
	for !i.over && i.left == 0 {
		k, err := i.next()
		switch {
		case errors.Is(err, io.EOF):
			return 0, io.ErrUnexpectedEOF
		case err != nil:
			return 0, err
		case k == kindEnd:
			i.over = true
		case k != kindStdin:
			return 0, fmt.Errorf("%w: %q in the middle of stdin", ErrMalformed, k)
		}
	}
	if i.over {
		return 0, io.EOF
	}
	return i.frames.Read(p)
}
