package memoryssh

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"io"

	"golang.org/x/crypto/ssh"

	"wmco/applier/ownfile"
	"wmco/applier/remote"
	"wmco/bundle"
)

// NewKey returns a new key, for a host or to log in with.
func NewKey() (ssh.Signer, ed25519.PrivateKey, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	key, err := ssh.NewSignerFromKey(private)
	return key, private, err
}

// NewProgram returns a node agent to upload. What its contents are does not matter: the code of this process runs.
func NewProgram(contents []byte) remote.Program {
	digest, sum := bundle.Of(contents), ownfile.NewSum()
	_, _ = sum.Write(contents) // it does not fail
	return remote.Program{
		Path: remote.ProgramPath(digest), Digest: digest, Size: int64(len(contents)), Sum: ownfile.SumText(sum),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(contents)), nil },
	}
}
