package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"wmco/applier/remote"
)

// Dialer opens connections to hosts.
type Dialer struct {
	Limits Limits
	Pins   Pins
	// Signers returns the keys to authenticate with. It is called once per attempt.
	Signers func(context.Context) ([]ssh.Signer, error)
	// Dial, if set, opens the TCP connections, as tests do whose hosts are at other addresses than they say.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// OnPin, if set, is called when the key of a host was pinned on first contact.
	OnPin func(remote.Target, ssh.PublicKey)
	// OnLogin, if set, is called with the key with which a host has let this client in, under the host key that was
	// checked. It is not called where that is not known: a host that asks for none, or one that was offered several.
	OnLogin func(remote.Target, ssh.PublicKey)
	// Traffic, if set, counts what the connections send and receive.
	Traffic *Traffic
}

// dialHost connects and authenticates.
func (d *Dialer) dialHost(ctx context.Context, t remote.Target) (*conn, error) {
	signers, err := d.Signers(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the keys for %s: %w", t, err)
	}
	check, err := newHostKeyCheck(ctx, t, d.Pins)
	if err != nil {
		return nil, err
	}
	dial := d.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: d.Limits.Dial}).DialContext
	}
	raw, err := dial(ctx, "tcp", t.Address)
	if err != nil {
		return nil, unlessCanceled(ctx, &remote.UnreachableError{Target: t, Phase: remote.PhaseDial, Err: err})
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	h := handshake{target: t, check: check, signers: signers}
	c, err := h.runHandshake(&wire{Conn: raw, traffic: d.Traffic}, d.Limits)
	if err != nil {
		_ = raw.Close() // the error of the handshake has the cause
		return nil, unlessCanceled(ctx, err)
	}
	d.Traffic.addLogin()
	if check.first != nil && d.OnPin != nil {
		d.OnPin(t, check.first)
	}
	if h.asked && len(signers) == 1 && d.OnLogin != nil { // asked: the host has refused a login without a key (RFC 4252, 5.2)
		d.OnLogin(t, signers[0].PublicKey())
	}
	return c, nil
}

// unlessCanceled returns why the context ended, if it has.
func unlessCanceled(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	return err
}

// handshake is the SSH side of one attempt.
type handshake struct {
	target  remote.Target
	check   *hostKeyCheck
	signers []ssh.Signer
	// allowed are the methods of authentication that the last refusal named.
	allowed []string
	asked   bool
}

func (h *handshake) runHandshake(w *wire, limits Limits) (*conn, error) {
	if limits.Handshake > 0 {
		if err := w.SetDeadline(time.Now().Add(limits.Handshake)); err != nil {
			return nil, &remote.UnreachableError{Target: h.target, Phase: remote.PhaseHandshake, Err: err}
		}
	}
	transport, channels, requests, err := ssh.NewClientConn(w, h.target.Address, h.clientConfig())
	if err != nil {
		return nil, h.explainFailure(err)
	}
	if err := w.setReadLimit(limits.quietLimit()); err != nil {
		return nil, errors.Join(&remote.UnreachableError{Target: h.target, Phase: remote.PhaseHandshake, Err: err}, transport.Close())
	}
	go ssh.DiscardRequests(requests)
	go refuseChannels(channels)
	return newConn(h.target, transport, limits), nil
}

func (h *handshake) clientConfig() *ssh.ClientConfig {
	return &ssh.ClientConfig{
		User:              h.target.User,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(h.signers...)},
		HostKeyAlgorithms: h.check.keyAlgorithms(),
		HostKeyCallback:   func(_ string, _ net.Addr, key ssh.PublicKey) error { return h.check.checkOffered(key) },
		AuthCallback: func(c *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
			h.asked, h.allowed = true, c.AllowedMethods
			return nil, nil
		},
	}
}

// explainFailure types the error of a handshake by how far it came.
func (h *handshake) explainFailure(err error) error {
	var network net.Error
	switch {
	case h.check.err != nil:
		return h.check.err
	case !h.check.passed:
		return &remote.UnreachableError{Target: h.target, Phase: remote.PhaseHandshake, Err: err}
	case errors.As(err, &network) || isClosedByPeer(err) || !h.asked:
		return &remote.UnreachableError{Target: h.target, Phase: remote.PhaseAuth, Err: err}
	}
	offered := make([]string, len(h.signers))
	for i, s := range h.signers {
		offered[i] = describeKey(s.PublicKey())
	}
	return &remote.AuthError{Target: h.target, Offered: offered, Allowed: h.allowed, Err: err}
}

// isClosedByPeer reports whether the other side closed the connection.
func isClosedByPeer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// refuseChannels refuses channels that a host wants to open.
func refuseChannels(channels <-chan ssh.NewChannel) {
	for c := range channels {
		_ = c.Reject(ssh.Prohibited, "") // a connection that is lost needs no answer
	}
}

// wire is a TCP connection that ends when it receives nothing for a while.
type wire struct {
	net.Conn
	// quiet is for how long, 0 while another one sets the deadlines.
	quiet   atomic.Int64
	traffic *Traffic
}

// Write implements net.Conn.
func (w *wire) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	w.traffic.addBytes(n, 0)
	return n, err
}

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	if quiet := time.Duration(w.quiet.Load()); quiet > 0 {
		if err := w.SetReadDeadline(time.Now().Add(quiet)); err != nil {
			return 0, err
		}
	}
	n, err := w.Conn.Read(p)
	w.traffic.addBytes(0, n)
	return n, err
}

// setReadLimit sets the limit; 0 removes it. It covers a Read that is already waiting.
func (w *wire) setReadLimit(quiet time.Duration) error {
	w.quiet.Store(int64(quiet))
	if quiet == 0 {
		return w.SetDeadline(time.Time{})
	}
	if err := w.SetWriteDeadline(time.Time{}); err != nil {
		return err
	}
	return w.SetReadDeadline(time.Now().Add(quiet))
}
