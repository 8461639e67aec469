package ssh

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net"
	"testing"

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

// execServer starts a server on which answer takes the place of every command.
func execServer(t *testing.T, answer func(ssh.Channel)) string {
	t.Helper()
	return sessionServer(t, func(channel ssh.Channel, requests <-chan *ssh.Request) { serveSession(channel, requests, answer) })
}

// sessionServer starts a server that handles each channel with a function.
func sessionServer(t *testing.T, handle func(ssh.Channel, <-chan *ssh.Request)) string {
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
		for open := range channels {
			channel, requests, err := open.Accept()
			if err != nil {
				return
			}
			go handle(channel, requests)
		}
	})
}

func serveSession(channel ssh.Channel, requests <-chan *ssh.Request, answer func(ssh.Channel)) {
	for r := range requests {
		_ = r.Reply(r.Type == "exec", nil)
		if r.Type == "exec" {
			answer(channel)
			_ = channel.Close()
		}
	}
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
	d := Dialer{Limits: quick(), Pins: NewKnownHosts(t.TempDir() + "/known_hosts"), Signers: keys(newSigner(t))}
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
		{"neither the agent nor SFTP", func(c ssh.Channel) { sendStatus(c, 127) }, "program"},
		{"an answer with a byte order mark", func(c ssh.Channel) {
			fmt.Fprint(c, "\ufeff{\"schema\":1,\"hostName\":\"h\",\r\n\"addresses\":[],\"osBuild\":\"10.0.20348\"}\r\n")
			sendStatus(c, 0)
		}, "none"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			d, to := stranger(t, execServer(t, tt.answer))
			_, err := client(t, d).Agent(to).Facts(t.Context())
			if kind(err) != tt.want {
				t.Errorf("%s, want %s: %v", kind(err), tt.want, err)
			}
		})
	}
}
