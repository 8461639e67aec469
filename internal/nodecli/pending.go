package nodecli

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/keyutil"

	"wmco/applier"
	"wmco/internal/cli"
)

// pendingKeyFile is where a kubelet keeps the key of its first certificate until it has that: below its --cert-dir
// (k8s.io/kubernetes/pkg/kubelet/certificate/bootstrap).
const pendingKeyFile = `C:\var\lib\kubelet\pki\kubelet-client.key.tmp`

// currentKeyFile has the certificate of the kubelet, with its key. While it can be read, a kubelet in need of a first
// certificate asks for that with the same key, even where pendingKeyFile is there too. On Windows it is a symbolic link
// (k8s.io/client-go/util/certificate, FileStore).
const currentKeyFile = `C:\var\lib\kubelet\pki\kubelet-client-current.pem`

// maxKey is the size of the largest key file that is read, in bytes.
const maxKey = 64 << 10

// pendingKey is the answer. The private key never leaves the host.
type pendingKey struct {
	PublicKey []byte `json:"publicKey"`
	// NotAfter is when the certificate that the kubelet has expires, zero if it has none.
	NotAfter time.Time `json:"notAfter,omitzero"`
}

func pendingKeyCommand(p Program) *cobra.Command {
	return &cobra.Command{
		Use:   "pending-key",
		Short: "Print the public key with which the kubelet of this host asks for its first certificate",
		Long: `Print {"publicKey": "...", "notAfter": "..."}: the key in the form of PKIX, DER, in base64, empty if the kubelet has none; and when the
client certificate that the kubelet has expires, left out if it has none. The operator compares the key with a certificate signing
request, so that no other host gets a certificate in the name of this one. A host whose certificate has expired joins again.` +
			cli.ExitHelp("0  done", "4  the key cannot be read"),
		Args: cli.Usage{}.Check,
		RunE: func(cmd *cobra.Command, _ []string) error {
			key, err := p.pendingKey(cmd.Context())
			if err != nil {
				return &cli.ExitError{Status: cli.ExitPartial, Err: err}
			}
			return p.print(key)
		},
	}
}

func (p Program) pendingKey(ctx context.Context) (pendingKey, error) {
	host, err := p.Host.Open()
	if err != nil {
		return pendingKey{}, err
	}
	if data, err := p.readLinked(ctx, host, currentKeyFile); err == nil {
		if have, err := tls.X509KeyPair(data, data); err == nil {
			signer, _ := have.PrivateKey.(crypto.Signer) // X509KeyPair returns no other
			public, err := x509.MarshalPKIXPublicKey(signer.Public())
			return pendingKey{public, have.Leaf.NotAfter.UTC()}, err
		}
	}
	// The kubelet does not use a file that it cannot read either.
	data, err := readKey(ctx, host, pendingKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return pendingKey{}, nil
	}
	if err != nil {
		return pendingKey{}, err
	}
	public, err := publicKey(data, pendingKeyFile)
	return pendingKey{PublicKey: public}, err
}

// readLinked reads a file of the host, also through a link.
func (p Program) readLinked(ctx context.Context, host applier.Host, path string) ([]byte, error) {
	file, err := p.Host.OpenLinked(ctx, host, path)
	if err != nil {
		return nil, err
	}
	return readAll(file, path)
}

// readKey reads a file of the host.
func readKey(ctx context.Context, host applier.Reader, path string) ([]byte, error) {
	file, err := host.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return readAll(file, path)
}

func readAll(file io.ReadCloser, path string) ([]byte, error) {
	defer file.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(io.LimitReader(file, maxKey))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return data, nil
}

// publicKey returns the public half of a private key.
func publicKey(data []byte, path string) ([]byte, error) {
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
