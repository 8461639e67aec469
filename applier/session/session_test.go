package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// program is what runs in these tests: its words tell it what to do.
func program(_ context.Context, c Command) int {
	switch c.Words[0] {
	case "echo":
		n, err := io.Copy(c.Stdout, c.Stdin)
		fmt.Fprintln(c.Stderr, n, err)
		if err != nil {
			return 2
		}
	case "ignore":
		fmt.Fprint(c.Stdout, "no")
		return 4
	case "say":
		fmt.Fprint(c.Stdout, strings.Join(c.Words[1:], " "))
	}
	return 0
}

// pair starts a session. Served yields how serving it ended, once the caller is closed.
func pair(t *testing.T) (caller *Caller, served <-chan error) {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	end := make(chan error, 1)
	go func() {
		err := Serve(t.Context(), in, out, program)
		_ = out.CloseWithError(io.ErrUnexpectedEOF)
		end <- err
	}()
	return NewCaller(fromServer, toServer), end
}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// result is what a call brought.
type result struct {
	Ending
	Stdout, Stderr string
	Err            string
}

func ask(c *Caller, words []string, stdin func(io.Writer) error) result {
	var out, complaint bytes.Buffer
	how, err := c.Call(Call{
		Words: words, Stdin: stdin, Stderr: &complaint,
		Stdout: func(r io.Reader) error { _, err := out.ReadFrom(r); return err },
	})
	r := result{Ending: how, Stdout: out.String(), Stderr: complaint.String()}
	if err != nil {
		r.Err = err.Error()
	}
	return r
}

func TestCommandsComeOneAfterAnother(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789abcdef", 200_000) // more than a frame holds
	c, served := pair(t)
	for _, step := range []struct {
		words []string
		stdin func(io.Writer) error
		want  result
	}{
		{[]string{"say", "a", "", "ü\n"}, nil, result{Ending{0, true, true}, "a  ü\n", "", ""}},
		{[]string{"echo"}, text("x"), result{Ending{0, true, true}, "x", "1 <nil>\n", ""}},
		{[]string{"echo"}, text(""), result{Ending{0, true, true}, "", "0 <nil>\n", ""}},
		{[]string{"echo"}, nil, result{Ending{0, true, true}, "", "0 <nil>\n", ""}},
		{[]string{"echo"}, text(large), result{Ending{0, true, true}, large, fmt.Sprintln(len(large), nil), ""}},
		{[]string{"ignore"}, text(large), result{Ending{4, true, true}, "no", "", ""}},
		{[]string{"say", "still", "there"}, nil, result{Ending{0, true, true}, "still there", "", ""}},
	} {
		if diff := cmp.Diff(step.want, ask(c, step.words, step.stdin)); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", step.words, diff)
		}
	}
	if err := errors.Join(c.Close(), <-served); err != nil {
		t.Error(err)
	}
}

var errSource = errors.New("the source broke")

// A stdin that broke is never taken for one that ended.
func TestABrokenStdinIsSeenAsCut(t *testing.T) {
	t.Parallel()
	c, served := pair(t)
	got := ask(c, []string{"echo"}, func(w io.Writer) error { return errors.Join(text("half")(w), errSource) })
	want := result{Ending{2, true, true}, "half", "4 unexpected EOF\n", errSource.Error()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := <-served; !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("served: %v", err)
	}
}

// A command that ends before it has read all of a stdin that never ends.
func TestACommandThatEndsEarlyEndsItsStdin(t *testing.T) {
	t.Parallel()
	c, _ := pair(t)
	endless := func(w io.Writer) error {
		for {
			if _, err := w.Write(make([]byte, 1000)); err != nil {
				return err
			}
		}
	}
	if diff := cmp.Diff(result{Ending{4, true, true}, "no", "", ""}, ask(c, []string{"ignore"}, endless)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := ask(c, []string{"say", "next"}, nil); got.Stdout != "next" {
		t.Errorf("%+v", got)
	}
}

func TestWhatIsNoSession(t *testing.T) {
	t.Parallel()
	for _, said := range []string{
		"wmco-node: unknown command \"serve\"\r\n", "'C:\\k\\agent\\x.exe' is not recognized", "h\x00\x00\x00\x13wmco-node session 2", "h\xff\xff\xff\xff",
		"o\x00\x00\x00\x01x", "{}", "h\x00\x00\x00\x13wmco-node",
	} {
		c := NewCaller(strings.NewReader(said), discarding{})
		how, err := c.Call(Call{Words: []string{"say"}, Stdout: func(r io.Reader) error { _, err := io.ReadAll(r); return err }})
		if !errors.Is(err, ErrMalformed) || how.Heard {
			t.Errorf("%q: %+v, %v", said, how, err)
		}
	}
}

type discarding struct{}

func (discarding) Write(p []byte) (int, error) { return len(p), nil }

func (discarding) Close() error { return nil }

// frame is one as it is on the wire.
func frame(k kind, data string) []byte {
	var out bytes.Buffer
	if err := send(&out, k, []byte(data)); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// asked is what a caller sends for two commands.
func asked() []byte {
	return slices.Concat(
		frame(kindWords, `["echo"]`), frame(kindStdin, "one"), frame(kindStdin, ""), frame(kindStdin, "two"), frame(kindEnd, ""),
		frame(kindWords, `["say","x"]`), frame(kindEnd, ""))
}

// Wherever the stream is cut, no command takes what it got for the whole.
func TestEveryCutIsSeen(t *testing.T) {
	t.Parallel()
	all := asked()
	first := len(all) - len(frame(kindWords, `["say","x"]`)) - headerSize
	for n := range len(all) + 1 {
		var whole []string
		err := Serve(t.Context(), bytes.NewReader(all[:n]), io.Discard, func(_ context.Context, c Command) int {
			if _, err := io.ReadAll(c.Stdin); err == nil {
				whole = append(whole, c.Words[0])
			}
			return 0
		})
		between := n == 0 || n == first || n == len(all)
		if (err == nil) != between {
			t.Errorf("after %d bytes: %v", n, err)
		}
		var want []string
		if n >= first {
			want = append(want, "echo")
		}
		if n == len(all) {
			want = append(want, "say")
		}
		if diff := cmp.Diff(want, whole); diff != "" {
			t.Errorf("after %d bytes (-want +got):\n%s", n, diff)
		}
	}
}

// FuzzServe serves anything: it ends, and a command gets no more stdin than came.
func FuzzServe(f *testing.F) {
	f.Add(asked())
	f.Add(frame(kindHello, hello))
	f.Add(frame(kindWords, `[]`))
	f.Add([]byte("w\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var read int
		err := Serve(t.Context(), bytes.NewReader(data), io.Discard, func(_ context.Context, c Command) int {
			all, _ := io.ReadAll(c.Stdin)
			read += len(all)
			return 0
		})
		if read > len(data) {
			t.Errorf("%d bytes of %d", read, len(data))
		}
		if err == nil && len(data) > 0 && data[0] != byte(kindWords) {
			t.Error("no command, and no error")
		}
	})
}

// FuzzCall takes anything for an answer: it ends, and what it passes on came.
func FuzzCall(f *testing.F) {
	f.Add(slices.Concat(frame(kindHello, hello), frame(kindStdout, "x"), frame(kindStderr, "y"), frame(kindStatus, "1")))
	f.Add(slices.Concat(frame(kindHello, hello), frame(kindStatus, "x")))
	f.Add(slices.Concat(frame(kindHello, hello), frame(kindWords, "[]")))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := NewCaller(bytes.NewReader(data), discarding{})
		got := ask(c, []string{"say"}, text("stdin"))
		if len(got.Stdout)+len(got.Stderr) > len(data) {
			t.Errorf("%+v", got)
		}
		if got.Err == "" && !got.Heard {
			t.Error("neither an answer nor an error")
		}
	})
}
