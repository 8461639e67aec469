package consumers

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"
)

// checkCertificates reads PEM certificates. Text between or after them, which readers skip, is an error.
func checkCertificates(_ context.Context, contents []byte, _ Options) error {
	if len(bytes.TrimSpace(contents)) == 0 {
		return errors.New("no certificate")
	}
	for rest := contents; len(bytes.TrimSpace(rest)) > 0; {
		block, after := pem.Decode(rest)
		if block == nil {
			return errors.New("data that is not PEM")
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("a %s among the certificates", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return err
		}
		rest = after
	}
	return nil
}

// checkKey refuses every key: masked ones are not checked, and any other is a secret in the repository.
func checkKey(context.Context, []byte, Options) error {
	return fmt.Errorf("a private key must be masked, as %s", masked)
}

// newPair writes a certificate and its key into one file, as k8s.io/client-go/util/certificate does, and returns its
// path.
func newPair(dir string) (string, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return "", fmt.Errorf("making a test certificate: %w", err)
	}
	file := filepath.Join(dir, "pair.pem")
	return file, os.WriteFile(file, append(certificate, key...), 0o600)
}
