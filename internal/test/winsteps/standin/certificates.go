package standin

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Files of a folder of certificates.
const (
	// FileCA is the CA that signs the others.
	FileCA = "ca.crt"
	// FileServer is the certificate and key of the servers of this package, FileNode those of a Node's kubelet.
	FileServer = "server.pem"
	FileNode   = "node.pem"
)

// validity of certificates: as long as the longest run takes.
const validity = 24 * time.Hour

// WriteCertificates writes a new CA, a certificate for servers on 127.0.0.1, and one of the kubelet of a Node.
func WriteCertificates(folder, node string, now time.Time) error {
	ca, caKey, err := signCertificate(&x509.Certificate{
		Subject: pkix.Name{CommonName: "wmco windows-steps"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil, now)
	if err != nil {
		return err
	}
	files := map[string][]byte{FileCA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw})}
	for name, template := range map[string]*x509.Certificate{
		FileServer: {
			Subject: pkix.Name{CommonName: "127.0.0.1"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		},
		// The name that the API server knows a kubelet by (kubernetes.io/docs/reference/access-authn-authz/node).
		FileNode: {
			Subject:  pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		},
	} {
		if files[name], err = signPEM(template, ca, caKey, now); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// signCertificate returns a certificate and its key. Without a parent it signs itself.
func signCertificate(template, parent *x509.Certificate, by *ecdsa.PrivateKey, now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return nil, nil, err
	}
	template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(validity)
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}

func signPEM(template, parent *x509.Certificate, by *ecdsa.PrivateKey, now time.Time) ([]byte, error) {
	cert, key, err := signCertificate(template, parent, by, now)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = errors.Join(pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}), pem.Encode(
		&text, &pem.Block{Type: "EC PRIVATE KEY", Bytes: der},
	))
	return text.Bytes(), err
}

// serverTLS returns the configuration of a server. Clients may show a certificate; who they are is not looked at.
func serverTLS(folder string) (*tls.Config, error) {
	text, err := os.ReadFile(filepath.Join(folder, FileServer))
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(text, text)
	return &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}, err
}
