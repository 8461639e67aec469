package winhost

import (
	"context"
	"crypto/x509"
	"fmt"

	"wmco/applier"
	"wmco/bundle"
)

// certificateStore holds the roots that the machine trusts (LocalMachine\Root), as DER.
type certificateStore interface {
	trusted() ([][]byte, error)
	add(der []byte) error
	// remove takes away the certificate with exactly these bytes. One that is not there, or that somebody else's store
	// brings in (group policy, the Windows root program), stays as it is.
	remove(der []byte) error
}

// certificates keeps bundle.KindTrustedCA. A certificate is named by the digest of all its bytes: two with one subject or
// one key are two.
type certificates struct{ store certificateStore }

func (c certificates) read(_ context.Context, names []string) ([]applier.Setting, error) {
	trusted, err := c.store.trusted()
	if err != nil {
		return nil, err
	}
	known := byDigest(trusted)
	all := make([]applier.Setting, len(names))
	for i, name := range names {
		der, ok := known[bundle.Digest(name)]
		all[i] = applier.Setting{Value: string(der), Present: ok}
	}
	return all, nil
}

func (c certificates) write(_ context.Context, s applier.Setting) error {
	trusted, err := c.store.trusted()
	if err != nil {
		return err
	}
	der, ok := byDigest(trusted)[bundle.Digest(s.Name)]
	switch {
	case ok == s.Present:
		return nil
	case !s.Present:
		return c.store.remove(der)
	}
	der = []byte(s.Value)
	if got := bundle.Of(der); got != bundle.Digest(s.Name) {
		return fmt.Errorf("the certificate has digest %s", got)
	}
	if _, err := x509.ParseCertificate(der); err != nil {
		return err
	}
	return c.store.add(der)
}

func byDigest(all [][]byte) map[bundle.Digest][]byte {
	known := map[bundle.Digest][]byte{}
	for _, der := range all {
		known[bundle.Of(der)] = der
	}
	return known
}
