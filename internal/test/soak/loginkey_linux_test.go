package soak

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/controller/gather"
	"wmco/controller/keys"
	"wmco/internal/hostsim/simulation"
)

// The private key of the Secret is replaced in storms. SSH servers accept what administrators_authorized_keys of their hosts has, which node agents write:
//
//	another key in the Secret --> bundle with both --> login with the new key --> bundle with the new key alone
//
// Hosts without an SSH server have no key of the operator.

// newLoginKey makes a key, and returns the text of the Secret.
func (s *soak) newLoginKey(t testing.TB) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	s.signer, err = ssh.NewSignerFromKey(private)
	must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	must(t, err)
	text := string(pem.EncodeToMemory(block))
	s.observer.hide(strings.Split(text, "\n")[2])
	return text
}

// loginLine is the public key of the Secret, as hosts have it.
func (s *soak) loginLine() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.signer.PublicKey())))
}

func loginSecret(key string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: keys.SecretName}, StringData: map[string]string{keys.SecretKey: key}}
}

func hasServer(m *machine) bool { return m.reached != nil }

// changeLoginKey replaces the private key. As in docs/keys.md that is done while no node is adopted or removed. It reports whether it was done.
func (s *soak) changeLoginKey(t *testing.T) bool {
	if len(s.adopting)+len(s.leaving) > 0 || len(s.named(hasServer)) == 0 {
		return false
	}
	key := s.newLoginKey(t)
	s.try(t, "the private key", func() error { return s.Update(s.ctx, loginSecret(key)) })
	return true
}

// isReachable reports whether the operator can log in to a host, or will get an SSH server that accepts its key. The simulation ends the node agent of an
// instance whose entry is removed, so that it gets no key afterwards.
func (s *soak) isReachable(m *machine) bool {
	return !hasServer(m) || slices.Contains(m.reached.keys.accepted(), s.loginLine())
}

// keysUnrest returns which host accepts other keys than that of the Secret; empty if none does.
func (s *soak) keysUnrest() string {
	for _, m := range s.named(func(m *machine) bool { return isOn(m) && hasServer(m) }) {
		if lines := m.reached.keys.accepted(); !slices.Equal(lines, []string{s.loginLine()}) {
			return fmt.Sprintf("%s accepts %q, and the Secret has %q", m.name, lines, s.loginLine())
		}
	}
	return ""
}

// acceptedKeys are the lines that an SSH server accepts.
type acceptedKeys struct {
	mu    sync.Mutex
	lines []string
	end   func()
}

func (k *acceptedKeys) accepted() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lines
}

// followKeys has the SSH server accept line, which is written to the host, and what the host has later, until keys.end is called.
func (l *reached) followKeys(line string, o *observer) error {
	var refused error
	if err := l.host.Edit(context.Background(), func(state *simulation.State) { refused = state.Authorize(line) }); err != nil || refused != nil {
		return errors.Join(err, refused)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ; ctx.Err() == nil; pause(ctx, 100*time.Millisecond) {
			if err := l.acceptKeysOfHost(ctx, o); err != nil && ctx.Err() == nil {
				o.violate(ruleKeys, "%s: %v", l.server.Address, err)
			}
		}
	}()
	l.keys.end = func() { cancel(); <-ended }
	return nil
}

func (l *reached) acceptKeysOfHost(ctx context.Context, o *observer) error {
	var lines []string
	if err := l.host.Look(ctx, func(state *simulation.State) { lines = state.AuthorizedKeys() }); err != nil {
		return err
	}
	before := l.keys.accepted()
	if slices.Equal(before, lines) {
		return nil
	}
	log, err := l.server.Log()
	if err != nil {
		return err
	}
	if locksOut(before, lines, log) {
		o.violate(ruleKeys, "%s accepted %q, and now %q, with none of which the operator has logged in", l.server.Address, before, lines)
	}
	l.keys.mu.Lock()
	l.keys.lines = lines
	l.keys.mu.Unlock()
	return l.server.AuthorizeOnly(lines...)
}

// locksOut reports whether a host accepts a key no longer, and none of those that are left was used for a login: log is that of its SSH server.
func locksOut(before, after []string, log string) bool {
	isKept := func(line string) bool { return slices.Contains(after, line) }
	isUsed := func(line string) bool {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		return err == nil && slices.ContainsFunc(strings.Split(log, "\n"), func(entry string) bool {
			return strings.Contains(entry, "Accepted publickey") && strings.Contains(entry, ssh.FingerprintSHA256(key))
		})
	}
	return slices.ContainsFunc(before, func(line string) bool { return !isKept(line) }) && !slices.ContainsFunc(after, isUsed)
}

// TestAHostThatLocksTheOperatorOutIsFound: a key may leave once another one was used.
func TestAHostThatLocksTheOperatorOutIsFound(t *testing.T) {
	s := &soak{observer: newObserver(time.Now)}
	line := func() string { s.newLoginKey(t); return s.loginLine() }
	earlier, next := line(), line()
	log := func(word string) string {
		return "Connection from 127.0.0.1\n" + word + " publickey for capi from 127.0.0.1: ED25519 " + ssh.FingerprintSHA256(s.signer.PublicKey()) + "\n"
	}
	for _, c := range []struct {
		name          string
		before, after []string
		log           string
		want          bool
	}{
		{"the first key", nil, []string{earlier}, "", false},
		{"another key beside it", []string{earlier}, []string{earlier, next}, "", false},
		{"the earlier key leaves after a login with the next one", []string{earlier, next}, []string{next}, log("Accepted"), false},
		{"the earlier key leaves after no login", []string{earlier, next}, []string{next}, "", true},
		{"the earlier key leaves after a login that was refused", []string{earlier, next}, []string{next}, log("Failed"), true},
		{"the next key leaves, which was the only one that was used", []string{earlier, next}, []string{earlier}, log("Accepted"), true},
		{"all keys leave", []string{earlier, next}, nil, log("Accepted"), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := locksOut(c.before, c.after, c.log); got != c.want {
				t.Errorf("locks out: %t", got)
			}
		})
	}
}
