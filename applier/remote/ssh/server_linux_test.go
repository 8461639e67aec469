package ssh

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"wmco/applier/remote"
)

// serve starts a server that does what OpenSSH on Linux never does. It ends with the test.
func serve(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				handle(c)
			}()
		}
	}()
	return l.Addr().String()
}

// execServer starts a server that has the agent, and on which answer takes the place of every command.
func execServer(t *testing.T, answer func(ssh.Channel)) string {
	t.Helper()
	return commandServer(t, func(c ssh.Channel, _ string) { answer(c) })
}

// commandServer is execServer with an answer that depends on the command, without the path of the program.
func commandServer(t *testing.T, answer func(ssh.Channel, string)) string {
	t.Helper()
	return sessionServer(t, func(channel ssh.Channel, requests <-chan *ssh.Request) { serveSession(channel, requests, answer) })
}

// sessionServer starts a server that handles each channel with a function.
func sessionServer(t *testing.T, handle func(ssh.Channel, <-chan *ssh.Request)) string {
	t.Helper()
	return channelServer(t, func(channels <-chan ssh.NewChannel) {
		for open := range channels {
			channel, requests, err := open.Accept()
			if err != nil {
				return
			}
			go handle(channel, requests)
		}
	})
}

// channelServer starts a server that handles the channels of each connection with a function.
func channelServer(t *testing.T, handle func(<-chan ssh.NewChannel)) string {
	t.Helper()
	signer := newSigner(t)
	config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}
	config.AddHostKey(signer)
	return serve(t, func(c net.Conn) {
		_, channels, requests, err := ssh.NewServerConn(c, config)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests)
		handle(channels)
	})
}

func serveSession(channel ssh.Channel, requests <-chan *ssh.Request, answer func(ssh.Channel, string)) {
	for r := range requests {
		_ = r.Reply(r.Type == "exec" || r.Type == "subsystem", nil)
		switch r.Type {
		case "exec":
			var line struct{ Line string }
			_ = ssh.Unmarshal(r.Payload, &line)
			_, words, _ := strings.Cut(line.Line, " ")
			answer(channel, words)
			_ = channel.Close()
		case "subsystem":
			serveAgent(channel)
			_ = channel.Close()
		}
	}
}

// serveAgent is an SFTP server with nothing but the agent, which cannot be replaced.
func serveAgent(channel ssh.Channel) {
	f := agentOnly{}
	_ = sftp.NewRequestServer(channel, sftp.Handlers{FileGet: f, FilePut: f, FileCmd: f, FileList: f}).Serve() // it ends with the client
}

type agentOnly struct{}

func (agentOnly) path() string { return "/" + strings.ReplaceAll(fake.Path, `\`, "/") }

// Fileread implements sftp.FileReader.
func (a agentOnly) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	if r.Filepath != a.path() {
		return nil, os.ErrNotExist
	}
	file, err := fake.Open()
	if err != nil {
		return nil, err
	}
	return file.(*os.File), nil
}

// Filewrite implements sftp.FileWriter.
func (agentOnly) Filewrite(*sftp.Request) (io.WriterAt, error) { return nil, os.ErrPermission }

// Filecmd implements sftp.FileCmder.
func (agentOnly) Filecmd(*sftp.Request) error { return os.ErrPermission }

// Filelist implements sftp.FileLister.
func (a agentOnly) Filelist(*sftp.Request) (sftp.ListerAt, error) { return agentInfo{}, nil }

// agentInfo is the agent in a listing.
type agentInfo struct{ fs.FileInfo }

func (agentInfo) Name() string       { return path.Base(agentOnly{}.path()) }
func (agentInfo) Size() int64        { return fake.Size }
func (agentInfo) Mode() fs.FileMode  { return 0o700 }
func (agentInfo) ModTime() time.Time { return time.Unix(1, 0) }
func (agentInfo) IsDir() bool        { return false }
func (agentInfo) Sys() any           { return nil }

// ListAt implements sftp.ListerAt.
func (a agentInfo) ListAt(to []fs.FileInfo, at int64) (int, error) {
	if at > 0 {
		return 0, io.EOF
	}
	to[0] = a
	return 1, io.EOF
}

func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// stranger returns a dialer for a server that accepts any key.
func stranger(t *testing.T, address string) (Dialer, remote.Target) {
	t.Helper()
	d := Dialer{Limits: generous(), Pins: NewKnownHosts(t.TempDir() + "/known_hosts"), Signers: keys(newSigner(t))}
	return d, remote.Target{User: remote.DefaultUser, Address: address}
}

const someFacts = `{"schema":1,"hostName":"h","addresses":[],"osBuild":"10.0.20348"}`

func sendFacts(c ssh.Channel) {
	fmt.Fprint(c, someFacts)
	sendStatus(c, 0)
}

func sendStatus(c ssh.Channel, code uint32) {
	_, _ = c.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{code}))
}

func TestErrorsOfStrangeAnswersAndEnds(t *testing.T) {
	for _, tt := range []struct {
		what   string
		answer func(ssh.Channel)
		want   string
	}{
		{"no status and no answer", func(ssh.Channel) {}, `command: status -1, signal ""`},
		{"no status after an answer", func(c ssh.Channel) {
			fmt.Fprint(c, someFacts)
		}, `command: status -1, signal ""`},
		{"a signal", func(c ssh.Channel) {
			_, _ = c.SendRequest("exit-signal", false, ssh.Marshal(struct {
				Name    string
				Core    bool
				Message string
				Lang    string
			}{"KILL", false, "", ""}))
		}, `command: status -1, signal "KILL"`},
		{"a complaint on stderr", func(c ssh.Channel) { fmt.Fprintln(c.Stderr(), "no such flag"); sendStatus(c, 2) }, `command: status 2, signal ""`},
		{"a profile that prints", func(c ssh.Channel) { fmt.Fprintln(c, "Welcome!\r\n{}"); sendStatus(c, 0) }, "answer"},
		{"UTF-16", func(c ssh.Channel) { fmt.Fprint(c, "\xff\xfe{\x00}\x00"); sendStatus(c, 0) }, "answer"},
		{"an answer of a newer agent", func(c ssh.Channel) { fmt.Fprint(c, `{"schema":99}`); sendStatus(c, 0) }, "answer"},
		{"half an answer", func(c ssh.Channel) { fmt.Fprint(c, `{"schema":1,`); sendStatus(c, 0) }, "answer"},
		{"the agent goes before it is run", func(c ssh.Channel) { sendStatus(c, 127) }, `command: status 127, signal ""`},
		{"an answer with a byte order mark", func(c ssh.Channel) {
			fmt.Fprint(c, "\ufeff{\"schema\":1,\"hostName\":\"h\",\r\n\"addresses\":[],\"osBuild\":\"10.0.20348\"}\r\n")
			sendStatus(c, 0)
		}, "none"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			d, to := stranger(t, execServer(t, tt.answer))
			_, err := client(t, d).AgentFor(to).Facts(t.Context())
			if kind(err) != tt.want {
				t.Errorf("%s, want %s: %v", kind(err), tt.want, err)
			}
		})
	}
}

// A server that closes channels instead of running commands is not asked forever.
func TestAServerThatClosesChannels(t *testing.T) {
	var execs atomic.Int64
	address := sessionServer(t, func(channel ssh.Channel, requests <-chan *ssh.Request) {
		for r := range requests {
			if r.Type == "exec" && execs.Add(1) > 1 {
				_ = channel.Close()
				continue
			}
			_ = r.Reply(true, nil)
			if r.Type == "exec" {
				sendFacts(channel)
			} else {
				serveAgent(channel)
			}
			_ = channel.Close()
		}
	})
	d, to := stranger(t, address)
	a := client(t, d).AgentFor(to)
	if _, err := a.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Facts(t.Context()); kind(err) != "interrupted" || execs.Load() > 5 {
		t.Errorf("%d times: %v", execs.Load(), err)
	}
}
