package remote

import (
	"bytes"
	"errors"
	"runtime/metrics"
	"strings"
	"testing"

	"wmco/applier/protocol"
)

// answerMemory is what reading an answer of up to a mebibyte may ask the heap for, in bytes.
const answerMemory = 256 << 20

// allocated is how many bytes the process has ever asked the heap for.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// read reads data as an answer and as events, as the agent's commands do.
func read(data []byte) error {
	var a answer
	e := events{tell: func(protocol.Event) {}}
	err := errors.Join(a.read(bytes.NewReader(data)), e.read(bytes.NewReader(data)))
	_, _ = protocol.DecodeObservation(a.data)
	return err
}

func TestAnswersThatAreTooMuch(t *testing.T) {
	elements := func(n int) string { return `{"schema":1,"actions":[{}` + strings.Repeat(",{}", n) + "]}" }
	for name, tt := range map[string]struct {
		text    string
		tooMuch bool
	}{
		"many elements":                 {elements(maxValues), true},
		"as many as allowed":            {elements(maxValues/2 - 10), false},
		"deep":                          {strings.Repeat("[", maxDepth+1), true},
		"brackets in a string":          {`{"schema":1,"program":"` + strings.Repeat(`[{,\"`, maxValues) + `"}`, false},
		"a string that ends in a slash": {`{"schema":1,"program":"\\","actions":[{}` + strings.Repeat(",{}", maxValues) + "]}", true},
		"a long line":                   {`{"schema":1,"program":"` + strings.Repeat("x", maxLine) + `"}`, true},
	} {
		if err := read([]byte(tt.text)); errors.Is(err, errTooMuch) != tt.tooMuch {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzAnswer reads whatever a host answers, within a limit of memory.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{
		`{"schema":1,"inSync":true}`, `{"schema":1,"event":"result","result":"applied"}` + "\n", "\ufeff{}\r\n", `{"schema":2}`, "Welcome!\r\n{",
		`{"schema":1,"missing":[{"parts":[1,2]}],"actions":[{},{}],"facts":{"networks":[{}]}}`, `{"schema":1,"program":"\\\"[[["}`,
	} {
		f.Add([]byte(text), uint16(1))
		f.Add([]byte(text), uint16(1000))
	}
	f.Fuzz(func(t *testing.T, data []byte, times uint16) {
		data = bytes.Repeat(data, int(times)+1)
		if len(data) > 1<<20 {
			data = data[:1<<20]
		}
		before := allocated()
		_ = read(data)
		if n := allocated() - before; n > answerMemory {
			t.Errorf("%d bytes made it allocate %d", len(data), n)
		}
	})
}
