package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/crypto/ssh"
)

// Dialer opens connections to machines.
type Dialer struct {
	Limits Limits
	Pins   Pins
	// Signers are the keys to authenticate with, asked for once per attempt.
	Signers func(context.Context) ([]ssh.Signer, error)
	// Met, where set, is told of a machine whose key was pinned on first contact.
	Met func(Target, ssh.PublicKey)
}

// dial connects, and tries a refused key again within Limits.AuthWindow.
func (d *Dialer) dial(ctx context.Context, t Target) (*conn, error) {
	end := time.Now().Add(d.Limits.AuthWindow)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		c, err := d.once(ctx, t)
		var refused *AuthError
		if !errors.As(err, &refused) || !time.Now().Add(pause).Before(end) {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}

// once makes one attempt.
func (d *Dialer) once(ctx context.Context, t Target) (*conn, error) {
	signers, err := d.Signers(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the keys for %s: %w", t, err)
	}
	check, err := newHostKeyCheck(t, d.Pins)
	if err != nil {
		return nil, err
	}
	raw, err := (&net.Dialer{Timeout: d.Limits.Dial}).DialContext(ctx, "tcp", t.Address)
	if err != nil {
		return nil, unlessCanceled(ctx, &UnreachableError{Target: t, Phase: PhaseDial, Err: err})
	}
	w := &wire{Conn: raw}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	h := handshake{target: t, check: check, signers: signers}
	c, err := h.run(w, d.Limits)
	if err != nil {
		_ = raw.Close() // the error of the handshake tells more
		return nil, unlessCanceled(ctx, err)
	}
	if check.first != nil && d.Met != nil {
		d.Met(t, check.first)
	}
	return c, nil
}

// unlessCanceled returns why the context ended, where it has.
func unlessCanceled(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	return err
}

// handshake is the SSH side of one attempt.
type handshake struct {
	target  Target
	check   *hostKeyCheck
	signers []ssh.Signer
	// tried and allowed are the methods of authentication, as the last refusal told them.
	tried, allowed []string
	asked          bool
}

func (h *handshake) run(w *wire, limits Limits) (*conn, error) {
	if limits.Handshake > 0 {
		if err := w.SetDeadline(time.Now().Add(limits.Handshake)); err != nil {
			return nil, &UnreachableError{Target: h.target, Phase: PhaseHandshake, Err: err}
		}
	}
	transport, channels, requests, err := ssh.NewClientConn(w, h.target.Address, h.config())
	if err != nil {
		return nil, h.tell(err)
	}
	if err := w.watch(limits.quiet()); err != nil {
		return nil, errors.Join(&UnreachableError{Target: h.target, Phase: PhaseHandshake, Err: err}, transport.Close())
	}
	go ssh.DiscardRequests(requests)
	go refuseChannels(channels)
	return newConn(h.target, transport, limits), nil
}

func (h *handshake) config() *ssh.ClientConfig {
	return &ssh.ClientConfig{
		User:              h.target.User,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(h.signers...)},
		HostKeyAlgorithms: h.check.algorithms(),
		HostKeyCallback:   func(_ string, _ net.Addr, key ssh.PublicKey) error { return h.check.check(key) },
		AuthCallback: func(c *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
			h.asked, h.tried, h.allowed = true, c.TriedMethods, c.AllowedMethods
			return nil, nil
		},
	}
}

// tell sorts the errors of a handshake by how far it came.
func (h *handshake) tell(err error) error {
	var network net.Error
	switch {
	case h.check.err != nil:
		return h.check.err
	case !h.check.passed:
		return &UnreachableError{Target: h.target, Phase: PhaseHandshake, Err: err}
	case errors.As(err, &network) || ended(err) || !h.asked:
		return &UnreachableError{Target: h.target, Phase: PhaseAuth, Err: err}
	}
	return &AuthError{Target: h.target, Methods: h.tried, Allowed: h.allowed, Keys: len(h.signers), Err: err}
}

// ended tells whether the other side closed the connection.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// refuseChannels answers machines that want to open channels to us.
func refuseChannels(channels <-chan ssh.NewChannel) {
	for c := range channels {
		_ = c.Reject(ssh.Prohibited, "") // a connection that is lost needs no answer
	}
}
