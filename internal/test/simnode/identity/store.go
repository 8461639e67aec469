package identity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"k8s.io/client-go/util/certificate"

	"wmco/bundle"
)

// Files are the files of a machine.
type Files interface {
	ReadFile(path string) ([]byte, error)
	WriteFile(ctx context.Context, path string, access bundle.Access, data []byte) error
}

// Store keeps certificates as the FileStore of k8s.io/client-go does, which needs a disk of the system. The current one
// is a copy here, not a link.
type Store struct {
	Files Files
	// Folder is a Windows path, Prefix begins the names of the files.
	Folder, Prefix string
	Now            func() time.Time
}

var _ certificate.Store = Store{}

// CurrentPath is the file of the current certificate and its key.
func (s Store) CurrentPath() string { return s.Folder + `\` + s.Prefix + "-current.pem" }

// Current implements certificate.Store.
func (s Store) Current() (*tls.Certificate, error) {
	data, err := s.Files.ReadFile(s.CurrentPath())
	if errors.Is(err, fs.ErrNotExist) {
		none := certificate.NoCertKeyError("there is no certificate in " + s.CurrentPath())
		return nil, &none
	}
	if err != nil {
		return nil, err
	}
	return parsePair(data)
}

// Update implements certificate.Store.
func (s Store) Update(cert, key []byte) (*tls.Certificate, error) {
	data := append(append([]byte{}, cert...), key...)
	parsed, err := parsePair(data)
	if err != nil {
		return nil, err
	}
	dated := fmt.Sprintf(`%s\%s-%s.pem`, s.Folder, s.Prefix, s.Now().Format("2006-01-02-15-04-05"))
	for _, path := range []string{dated, s.CurrentPath()} {
		if err := s.Files.WriteFile(context.Background(), path, bundle.AccessAdmins, data); err != nil {
			return nil, err
		}
	}
	return parsed, nil
}

// parsePair reads a certificate and its key from one PEM text.
func parsePair(data []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(data, data)
	if err != nil {
		return nil, err
	}
	pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0])
	return &pair, err
}
