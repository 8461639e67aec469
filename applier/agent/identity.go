package agent

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// certificateOf returns the first certificate of a file in PEM, which is that of the client.
func certificateOf(data []byte) (*x509.Certificate, error) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate of the kubelet: %w", err)
		}
		return cert, nil
	}
	return nil, errors.New("the file of the kubelet's client certificate holds no certificate")
}

// NodeOfCertificate returns the name of the node in the client certificate of a kubelet, in PEM.
func NodeOfCertificate(data []byte) (string, error) {
	cert, err := certificateOf(data)
	if err != nil {
		return "", err
	}
	name, ok := strings.CutPrefix(cert.Subject.CommonName, userPrefix)
	if !ok || name == "" {
		return "", fmt.Errorf("the client certificate is that of %q, which is no node", cert.Subject.CommonName)
	}
	return name, nil
}

// explainError adds the problem of a certificate to an error. An API server answers to an expired client
// certificate as to none: a host that was off for longer than the certificate is valid cannot renew it, and has to join
// again.
func (l *link) explainError(err error) error {
	now := l.clock.Now()
	if invalid := (x509.CertificateInvalidError{}); errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		return fmt.Errorf("the certificate of the API server is not valid at %s, the time of this host (fix: check its clock): %w", formatTime(now), err)
	}
	if !apierrors.IsUnauthorized(err) {
		return err
	}
	cert, bad := certificateOf(l.config.CertData)
	switch {
	case bad != nil:
		return err
	case now.After(cert.NotAfter):
		return fmt.Errorf("the client certificate of the kubelet expired on %s; this host waits until the operator lets it join again: %w", formatTime(cert.NotAfter), err)
	case now.Before(cert.NotBefore):
		return fmt.Errorf("the client certificate of the kubelet is not valid before %s, and this host has %s (fix: check its clock): %w", formatTime(cert.NotBefore), formatTime(now), err)
	}
	return fmt.Errorf("the API server does not accept the client certificate of the kubelet, which is valid until %s: %w",
		formatTime(cert.NotAfter), err)
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
