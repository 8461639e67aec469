package settings

import (
	"context"
	"crypto/x509"
	"fmt"

	"wmco/applier/plan"
	"wmco/bundle"
)

// certificateStore has the CAs that the host trusts (LocalMachine\Root), as DER.
type certificateStore interface {
	TrustedRoots() ([][]byte, error)
	AddRoot(der []byte) error
	// RemoveRoot removes the certificate with exactly these bytes. It does nothing if there is none, or if the
	// certificate comes from group policy or the Windows root program.
	RemoveRoot(der []byte) error
}

// certificateKeeper keeps bundle.KindTrustedCA. The name of a certificate is the digest of all its bytes, so that two
// with the same subject or key differ.
type certificateKeeper struct{ store certificateStore }

func (c certificateKeeper) Read(_ context.Context, names []string) ([]plan.Setting, error) {
	trusted, err := c.store.TrustedRoots()
	if err != nil {
		return nil, err
	}
	known := byDigest(trusted)
	all := make([]plan.Setting, len(names))
	for i, name := range names {
		der, ok := known[bundle.Digest(name)]
		all[i] = plan.Setting{Value: string(der), Present: ok}
	}
	return all, nil
}

func (c certificateKeeper) Write(_ context.Context, s plan.Setting) error {
	trusted, err := c.store.TrustedRoots()
	if err != nil {
		return err
	}
	der, ok := byDigest(trusted)[bundle.Digest(s.Name)]
	switch {
	case ok == s.Present:
		return nil
	case !s.Present:
		return c.store.RemoveRoot(der)
	}
	der = []byte(s.Value)
	if got := bundle.Of(der); got != bundle.Digest(s.Name) {
		return fmt.Errorf("the certificate has digest %s", got)
	}
	if _, err := x509.ParseCertificate(der); err != nil {
		return err
	}
	return c.store.AddRoot(der)
}

func byDigest(all [][]byte) map[bundle.Digest][]byte {
	known := map[bundle.Digest][]byte{}
	for _, der := range all {
		known[bundle.Of(der)] = der
	}
	return known
}
