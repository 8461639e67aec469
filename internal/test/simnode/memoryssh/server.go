package memoryssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"google.golang.org/grpc/test/bufconn"

	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/simnode"
)

// Server is the SSH server of one machine. It lets in who has a key of the machine's administrators_authorized_keys, with any name of an account.
type Server struct {
	// Registries sends the requests of commands to registries; nil is over the network.
	Registries http.RoundTripper

	machine *simnode.Machine

	// mu guards what follows.
	mu      sync.Mutex
	hostKey ssh.Signer
	off     bool
	refuses bool
	open    map[net.Conn]bool
	used    []string
	all     sync.WaitGroup
}

// New gives a machine a server, which takes connections while the machine is on.
func New(m *simnode.Machine, hostKey ssh.Signer) *Server {
	s := &Server{machine: m, hostKey: hostKey, open: map[net.Conn]bool{}}
	_ = m.Own.Files.MakeFolder(bundle.Dir(bundle.UploadFolder), bundle.AccessUsers) // every Windows has it
	m.SetSSH(s)
	return s
}

var errRefused = errors.New("connect: connection refused")

// Dial connects to it. Where the server or its machine is off, nothing listens.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off || !s.machine.IsOn() {
		return nil, errRefused
	}
	listener := bufconn.Listen(1 << 20)
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := listener.Accept() // it is not closed before Dial returns
		accepted <- c
	}()
	client, err := listener.DialContext(ctx)
	if err != nil {
		_ = listener.Close()
		<-accepted
		return nil, err
	}
	server := <-accepted
	s.open[server] = true
	s.all.Go(func() {
		s.serveConnection(server)
		_ = server.Close()
		_ = listener.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, server)
	})
	return client, nil
}

// Break ends all connections: what runs in them is interrupted. New ones are taken.
func (s *Server) Break() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		_ = c.Close()
	}
}

// Stop ends all connections, and takes none any more.
func (s *Server) Stop() {
	s.mu.Lock()
	s.off = true
	s.mu.Unlock()
	s.Break()
	s.all.Wait()
}

// Restart takes connections again.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = false
	return nil
}

// Authorize has the machine let in who has a key.
func (s *Server) Authorize(key ssh.PublicKey) (err error) {
	line := string(bytes.TrimSpace(ssh.MarshalAuthorizedKey(key)))
	return errors.Join(s.machine.Edit(context.Background(), func(state *simulation.State) { err = state.Authorize(line) }), err)
}

// RefuseKeys has it refuse every key, also those of its machine, or accept those again.
func (s *Server) RefuseKeys(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses = is
}

func (s *Server) refusesKeys() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refuses
}

// SetHostKey gives the server another host key, as a host that is installed again has.
func (s *Server) SetHostKey(key ssh.Signer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hostKey = key
}

// Logins returns how many logins there were.
func (s *Server) Logins() int { return len(s.Used()) }

// Used returns the fingerprints of the keys of all logins, in their order.
func (s *Server) Used() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.used)
}

// config is that of one connection.
func (s *Server) config() *ssh.ServerConfig {
	c := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if s.refusesKeys() || !s.authorizes(key) {
			return nil, fmt.Errorf("no line of administrators_authorized_keys has the key %s", ssh.FingerprintSHA256(key))
		}
		return &ssh.Permissions{Extensions: map[string]string{keyExtension: ssh.FingerprintSHA256(key)}}, nil
	}}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.AddHostKey(s.hostKey)
	return c
}

// keyExtension is where the fingerprint of the key of a connection is kept.
const keyExtension = "key"

func (s *Server) authorizes(key ssh.PublicKey) (found bool) {
	err := s.machine.Look(context.Background(), func(state *simulation.State) {
		for _, line := range state.AuthorizedKeys() {
			known, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
			found = found || err == nil && bytes.Equal(known.Marshal(), key.Marshal())
		}
	})
	return found && err == nil
}

// serveConnection answers one connection until it ends. What runs in it ends then.
func (s *Server) serveConnection(raw net.Conn) {
	conn, channels, requests, err := ssh.NewServerConn(raw, s.config())
	if err != nil {
		return
	}
	s.mu.Lock()
	s.used = append(s.used, conn.Permissions.Extensions[keyExtension])
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	all.Go(func() { ssh.DiscardRequests(requests) })
	for c := range channels {
		if c.ChannelType() != "session" {
			_ = c.Reject(ssh.UnknownChannelType, c.ChannelType())
			continue
		}
		channel, asks, err := c.Accept()
		if err != nil {
			break
		}
		all.Go(func() { s.serveSession(ctx, channel, asks) })
	}
	_ = conn.Close()
}

// serveSession answers the requests of a session (RFC 4254, 6.5): one command or one subsystem.
func (s *Server) serveSession(ctx context.Context, channel ssh.Channel, asks <-chan *ssh.Request) {
	defer channel.Close() //nolint:errcheck // the connection may be gone
	for ask := range asks {
		var what struct{ Text string }
		known := ask.Type == "exec" || ask.Type == "subsystem"
		known = known && ssh.Unmarshal(ask.Payload, &what) == nil && (ask.Type == "exec" || what.Text == "sftp")
		_ = ask.Reply(known, nil)
		if !known {
			continue
		}
		go ssh.DiscardRequests(asks)
		status := 0
		if ask.Type == "exec" {
			status = run{s.machine, channel, s.Registries}.runLine(ctx, what.Text)
		} else {
			serveFiles(s.machine, channel)
		}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)})) //nolint:gosec // not negative
		return
	}
}

// Network is what the operator dials in place of TCP.
type Network struct {
	mu      sync.Mutex
	servers map[string]*Server
}

// Connect puts a server at an address; nil removes the one that is there.
func (n *Network) Connect(address string, s *Server) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.servers == nil {
		n.servers = map[string]*Server{}
	}
	n.servers[address] = s
	if s == nil {
		delete(n.servers, address)
	}
}

// Dial is for ssh.Dialer.Dial. Where no server is, there is no route.
func (n *Network) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, _, ok := strings.Cut(address, ":")
	n.mu.Lock()
	s := n.servers[host]
	n.mu.Unlock()
	if !ok || s == nil {
		return nil, errors.New("connect: no route to host")
	}
	return s.Dial(ctx)
}
