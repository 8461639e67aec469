package ssh

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"wmco/applier/remote"
	"wmco/bundle"
)

// mostMemory is what one host may cost, in bytes.
const mostMemory = 256 << 20

// forever writes a text again and again, until the reader ends.
func forever(w io.Writer, text string) {
	many := []byte(strings.Repeat(text, max(1, (256<<10)/len(text))))
	for {
		if _, err := w.Write(many); err != nil {
			return
		}
	}
}

// differing is an observation after which apply is asked for.
func differing(d bundle.Digest) string {
	return fmt.Sprintf(`{"schema":1,"program":"x","bundle":%q,"inSync":false,"impact":"none","actions":[],"facts":{}}`, d)
}

func TestNoHostExhaustsMemory(t *testing.T) {
	want := small(t, 3, 1)
	nested := strings.Repeat("[", 4<<20)
	for _, tt := range []struct {
		what string
		// answer answers facts, observe and apply.
		answer func(c ssh.Channel, words string)
		want   string
	}{
		{"facts without an end", func(c ssh.Channel, _ string) { forever(c, `{"a":1},`) }, "answer"},
		{"a line without an end", func(c ssh.Channel, _ string) { fmt.Fprint(c, `{"x":"`); forever(c, "x") }, "answer"},
		{"an observation of small elements", func(c ssh.Channel, _ string) {
			fmt.Fprint(c, `{"schema":1,"actions":[{}`)
			forever(c, ",{}")
		}, "answer"},
		{"small elements in the limit of bytes", func(c ssh.Channel, _ string) {
			fmt.Fprint(c, `{"schema":1,"actions":[{}`+strings.Repeat(",{}", 2<<20)+"]}")
			sendStatus(c, 1)
		}, "answer"},
		{"deep nesting", func(c ssh.Channel, _ string) { fmt.Fprint(c, `{"schema":1,"actions":`+nested); sendStatus(c, 1) }, "answer"},
		{"an event without an end", func(c ssh.Channel, words string) {
			if strings.HasPrefix(words, "observe") {
				fmt.Fprint(c, differing(want.Manifest.Digest))
				sendStatus(c, 1)
				return
			}
			fmt.Fprint(c, `{"schema":1,"event":"note","message":"`)
			forever(c, "x")
		}, "answer"},
		{"an event of small elements", func(c ssh.Channel, words string) {
			if strings.HasPrefix(words, "observe") {
				fmt.Fprint(c, differing(want.Manifest.Digest))
				sendStatus(c, 1)
				return
			}
			fmt.Fprintln(c, `{"schema":1,"event":"result","result":"refused","missing":[{}`+strings.Repeat(",{}", 1<<20)+"]}")
			sendStatus(c, 2)
		}, "answer"},
		{"events without an end", func(c ssh.Channel, words string) {
			if strings.HasPrefix(words, "observe") {
				fmt.Fprint(c, differing(want.Manifest.Digest))
				sendStatus(c, 1)
				return
			}
			forever(c, `{"schema":1,"event":"note","message":"hello"}`+"\n")
		}, "answer"},
		{"complaints without an end", func(c ssh.Channel, _ string) {
			go func() { time.Sleep(2 * time.Second); sendStatus(c, 2); _ = c.Close() }()
			forever(c.Stderr(), "no\n")
		}, `command: status 2, signal ""`},
	} {
		t.Run(tt.what, func(t *testing.T) {
			d, to := stranger(t, commandServer(t, tt.answer))
			measured(t, tt.want, func(ctx context.Context) error {
				_, err := client(t, d).AgentFor(to).Apply(ctx, want, remote.ApplyOptions{}, quiet)
				return err
			})
		})
	}
}

// measured calls do, and fails the test if it takes much memory or time, or ends with another kind of error.
func measured(t *testing.T, want string, do func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Minute, errors.New("it does not end"))
	defer cancel()
	// What other tests have left is not the host's, and a collector that comes late on a busy machine is no use of memory.
	debug.FreeOSMemory()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(mostMemory / 2))
	stop, peak := make(chan struct{}), make(chan uint64)
	go watchMemory(stop, peak)
	err := do(ctx)
	close(stop)
	if used := <-peak; used > mostMemory {
		t.Errorf("it took %d MiB", used>>20)
	}
	if kind(err) != want {
		t.Errorf("%s, want %s: %.300v", kind(err), want, err)
	}
}

// A folder without an end is an answer of the SFTP server, not of the agent.
func TestNoSFTPServerExhaustsMemory(t *testing.T) {
	for what, answer := range map[string]func(ssh.Channel){
		"a folder without an end": endlessFolder,
		"packets of 4 GB":         func(c ssh.Channel) { _, _ = c.Write([]byte{0xff, 0xff, 0xff, 0xff, 2}); forever(c, "x") },
		"no SFTP at all":          func(c ssh.Channel) { forever(c, "Welcome!\r\n") },
	} {
		t.Run(what, func(t *testing.T) {
			d, to := stranger(t, sessionServer(t, func(channel ssh.Channel, requests <-chan *ssh.Request) {
				for r := range requests {
					_ = r.Reply(true, nil)
					if r.Type == "exec" { // there is no agent yet
						sendStatus(channel, 127)
						_ = channel.Close()
						continue
					}
					answer(channel)
				}
			}))
			measured(t, "program", func(ctx context.Context) error {
				_, err := client(t, d).AgentFor(to).Facts(ctx)
				return err
			})
		})
	}
}

// endlessFolder speaks SFTP version 3 (draft-ietf-secsh-filexfer-02): a version, a handle, and then names for every request.
func endlessFolder(c ssh.Channel) {
	for {
		var size [4]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		request := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(c, request); err != nil {
			return
		}
		var answer []byte
		switch request[0] {
		case 1: // SSH_FXP_INIT
			answer = []byte{2, 0, 0, 0, 3}
		case 11: // SSH_FXP_OPENDIR
			answer = append([]byte{102}, request[1:5]...)
			answer = append(answer, 0, 0, 0, 1, 'h')
		default: // SSH_FXP_NAME: a thousand files without attributes
			answer = append([]byte{104}, request[1:5]...)
			answer = append(answer, 0, 0, 3, 232)
			answer = append(answer, strings.Repeat("\x00\x00\x00\x01n\x00\x00\x00\x01n\x00\x00\x00\x00", 1000)...)
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...)); err != nil {
			return
		}
	}
}
