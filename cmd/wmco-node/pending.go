package main

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/keyutil"

	"wmco/applier"
	"wmco/internal/cli"
)

// pendingKeyFile is where a kubelet keeps the key of its first certificate until it has that: below its --cert-dir
// (k8s.io/kubernetes/pkg/kubelet/certificate/bootstrap).
const pendingKeyFile = `C:\var\lib\kubelet\pki\kubelet-client.key.tmp`

// currentKeyFile has the certificate that it had before, if there was one: it asks for the next one with the same key.
const currentKeyFile = `C:\var\lib\kubelet\pki\kubelet-client-current.pem`

// maxKey is the size of the largest key file that is read, in bytes.
const maxKey = 64 << 10

// pendingKey is the answer. The private key never leaves the host.
type pendingKey struct {
	PublicKey []byte `json:"publicKey"`
}

func pendingKeyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "pending-key",
		Short: "Print the public key for which the kubelet of this host waits for its first certificate",
		Long: `Print {"publicKey": "..."} with the key in the form of PKIX, DER, in base64; empty if the kubelet waits for none. The operator compares
it with a certificate signing request, so that nobody else gets a certificate in the name of this host.` +
			cli.ExitHelp("0  done", "4  the key cannot be read"),
		Args: cli.Usage{}.Check,
		RunE: func(cmd *cobra.Command, _ []string) error {
			key, err := a.pendingKey(cmd.Context())
			if err != nil {
				return &cli.ExitError{Status: cli.ExitPartial, Err: err}
			}
			return a.print(key)
		},
	}
}

func (a *app) pendingKey(ctx context.Context) (pendingKey, error) {
	host, err := openHost(a.root)
	if err != nil {
		return pendingKey{}, err
	}
	for _, path := range []string{pendingKeyFile, currentKeyFile} {
		public, err := publicKey(ctx, host, path)
		if !errors.Is(err, fs.ErrNotExist) {
			return pendingKey{public}, err
		}
	}
	return pendingKey{}, nil
}

// publicKey returns the public half of the private key in a file.
func publicKey(ctx context.Context, host applier.Reader, path string) ([]byte, error) {
	file, err := host.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(io.LimitReader(file, maxKey))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	private, err := keyutil.ParsePrivateKeyPEM(data)
	if err != nil {
		// The error may quote the file.
		return nil, fmt.Errorf("reading %s: it holds no private key", path)
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("reading %s: a key of type %T has no public half", path, private)
	}
	return x509.MarshalPKIXPublicKey(signer.Public())
}
