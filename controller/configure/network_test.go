package configure

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/controller/hosts"
	"wmco/preflight"
)

// computer is a host that is reached in process: its answers, and what was done on it.
type computer struct {
	hostKey ssh.PublicKey
	facts   bundle.Facts
	// fails is why it cannot be reached; refuses is why a command fails, by the command.
	fails   error
	refuses map[string]error
	// result is how apply ends where it is not applier.ResultApplied, locked the run that is in its way, pending the key for which the kubelet waits.
	result  protocol.Event
	pending remote.PendingKey
	lacks   preflight.Answer
	// interrupted is the bundle of a run that waits for its confirmation.
	interrupted bundle.Digest

	// has is the bundle that was applied, confirmed the one that was confirmed, did the commands that change a host, with their arguments.
	has, confirmed bundle.Digest
	did            []string
}

// network is a transport to computers, by the addresses at which they answer. It pins their keys as applier/remote/ssh does.
type network struct {
	login *hosts.Login
	at    map[string]*computer
}

// keyWithSeed returns one of 256 keys.
func keyWithSeed(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), seed))
}

// hostKey returns one of 256 host keys.
func hostKey(t *testing.T, seed byte) ssh.PublicKey {
	t.Helper()
	key, err := ssh.NewPublicKey(keyWithSeed(seed).Public())
	must(t, err)
	return key
}

func (*network) Connect(context.Context, remote.Target) error { return nil }

func (*network) Close() error { return nil }

func (*network) Transfer(context.Context, remote.Target, func(remote.Files) error) error {
	return remote.ErrNoSFTP
}

// Run implements remote.Transport.
func (n *network) Run(ctx context.Context, t remote.Target, c remote.Command) error {
	host := n.at[t.Host()]
	if host == nil {
		return &remote.UnreachableError{Target: t, Phase: remote.PhaseDial, Err: errors.New("connection refused")}
	}
	if host.fails != nil {
		return host.fails
	}
	if err := n.checkHostKey(ctx, t, host.hostKey); err != nil {
		return err
	}
	signers, err := n.login.Signers(ctx)
	if err != nil {
		return err
	}
	n.login.NoteLogin(t, signers[0].PublicKey())
	var stdin bytes.Buffer
	if c.Stdin != nil {
		if err := c.Stdin(ctx, &stdin); err != nil {
			return err
		}
	}
	words := strings.Fields(c.Line)[1:]
	if err := host.refuses[words[0]]; err != nil {
		return err
	}
	answer, err := host.answer(words, &stdin)
	if err != nil {
		return err
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return c.Stdout(bytes.NewReader(text))
}

func (n *network) checkHostKey(ctx context.Context, t remote.Target, offered ssh.PublicKey) error {
	pinned, err := n.login.Pinned(ctx, t)
	switch {
	case err != nil:
		return err
	case len(pinned) == 0:
		return n.login.Pin(ctx, t, offered)
	case !bytes.Equal(pinned[0].Marshal(), offered.Marshal()):
		return &remote.HostKeyError{Target: t, Offered: "another key", Unpin: n.login.Unpin(t)}
	}
	return nil
}

// answer does what a command of the node agent does.
func (c *computer) answer(words []string, stdin io.Reader) (any, error) {
	switch words[0] {
	case "facts":
		return c.facts, nil
	case "pending-key":
		return c.pending, nil
	case "preflight":
		return c.lacks, nil
	case "confirm":
		c.confirmed = bundle.Digest(words[1])
		return nil, nil
	}
	if words[0] != "observe" {
		c.did = append(c.did, strings.Join(words[:len(words)-2], " ")) // without the checksum of the agent
	}
	var manifest bundle.Manifest
	if words[0] == "observe" || words[0] == "apply" {
		r, err := archive.NewReader(stdin)
		if err != nil {
			return nil, err
		}
		manifest = r.Manifest
	}
	if words[0] == "observe" {
		return protocol.Observation{
			Schema: protocol.Schema, Bundle: manifest.Digest, Applied: c.has, InSync: c.has == manifest.Digest,
			Impact: bundle.ImpactRestart, Interrupted: c.interrupted,
		}, nil
	}
	end := c.result
	end.Schema, end.Event = protocol.Schema, protocol.EventResult
	if end.Result == "" {
		end.Result = protocol.ResultApplied
	}
	if words[0] == "apply" && end.Result == protocol.ResultApplied {
		c.has = manifest.Digest
	}
	return end, nil
}
