package ssh

import (
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"wmco/applier/remote"
)

// publicKey returns a host key that is always the same.
func publicKey(t *testing.T, n byte) ssh.PublicKey {
	t.Helper()
	key, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(slices.Repeat([]byte{n}, ed25519.SeedSize)).Public())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// knownHosts is a file of OpenSSH with these lines.
func knownHosts(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestTheHostKeyCheck: a host shows a pinned key, or has none pinned yet. Nothing else passes, and no key takes the place of another one.
func TestTheHostKeyCheck(t *testing.T) {
	target := remote.Target{Address: "192.0.2.1:22"}
	own, other := publicKey(t, 1), publicKey(t, 2)
	line := func(key ssh.PublicKey) string { return KnownHostsLine(target.Address, key) }
	revoked := func(key ssh.PublicKey) string {
		return "@revoked * " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	}
	for _, tt := range []struct {
		name   string
		file   string
		passes bool
		first  bool
		// want is the kind of the error.
		want error
	}{
		{"the first contact", knownHosts(t, "# empty"), true, true, nil},
		{"the pinned key", knownHosts(t, line(own)), true, false, nil},
		{"one of two pinned keys", knownHosts(t, line(other), line(own)), true, false, nil},
		{"another key is pinned", knownHosts(t, line(other)), false, false, &remote.HostKeyError{}},
		{"a key of another host is pinned", knownHosts(t, KnownHostsLine("192.0.2.2:22", other)), true, true, nil},
		{"the key is revoked", knownHosts(t, revoked(own)), false, false, ErrRevoked},
		{"the pinned key was revoked since", knownHosts(t, line(own), revoked(own)), false, false, ErrRevoked},
		{"one pinned key was revoked, the host shows it", knownHosts(t, line(own), line(other), revoked(own)), false, false, &remote.HostKeyError{}},
	} {
		before, err := os.ReadFile(tt.file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := newHostKeyCheck(t.Context(), target, NewKnownHosts(tt.file))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		err = c.checkOffered(own)
		changed := (*remote.HostKeyError)(nil)
		isKind := errors.Is(err, tt.want)
		if _, ok := tt.want.(*remote.HostKeyError); ok { //nolint:errorlint // the kind that the table names
			isKind = errors.As(err, &changed)
		}
		if c.passed != tt.passes || (c.first != nil) != tt.first || !isKind || (err == nil) != tt.passes || !errors.Is(c.err, err) {
			t.Errorf("%s: passed %t, first contact %t, %v", tt.name, c.passed, c.first != nil, err)
		}
		after, err := os.ReadFile(tt.file)
		if err != nil {
			t.Fatal(err)
		}
		want := string(before)
		if tt.first {
			want += line(own) + "\n"
		}
		if string(after) != want {
			t.Errorf("%s: the file becomes\n%s", tt.name, after)
		}
	}
}

// TestAlgorithmsOfHostKeys: the types of pinned keys are asked for first, and certificates of hosts never.
func TestAlgorithmsOfHostKeys(t *testing.T) {
	rsaKey, err := ssh.NewPublicKey(&rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), 2047), E: 65537})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		pinned []ssh.PublicKey
		first  []string
	}{
		"nothing is pinned": {nil, nil},
		"an Ed25519 key":    {[]ssh.PublicKey{publicKey(t, 1)}, []string{ssh.KeyAlgoED25519}},
		"an RSA key":        {[]ssh.PublicKey{rsaKey}, []string{ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512}},
	} {
		all := (&hostKeyCheck{pinned: tt.pinned}).keyAlgorithms()
		first := slices.Sorted(slices.Values(all[:len(tt.first)]))
		if !slices.Equal(first, tt.first) {
			t.Errorf("%s: %q come first", name, first)
		}
		for _, algorithm := range []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoRSASHA256} {
			if !slices.Contains(all, algorithm) {
				t.Errorf("%s: %s is not asked for", name, algorithm)
			}
		}
		if i := slices.IndexFunc(all, func(a string) bool { return strings.Contains(a, "-cert-") }); i >= 0 {
			t.Errorf("%s: %s is asked for", name, all[i])
		}
	}
}
