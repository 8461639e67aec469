// Command examplecerts renews every certificate in the example clusters of golden/clusters, in place.
//
//	go run ./internal/build/examplecerts golden/clusters
//
// It finds PEM certificates in the YAML files of the folders, as text or as the base64 of a Secret, and replaces each
// by a new one with the same common name. In a new file, a block may contain `name <common name>` instead of a
// certificate. A name has the same certificate in all files of a run. Private keys are never written. Every run changes
// the goldens that contain certificates or their fingerprints.
package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	serviceSigner = "openshift-service-serving-signer"
	exporter      = "windows-exporter.openshift-windows-machine-config-operator.svc"
)

// issuers are the signers of certificates that are not self-signed, by common name.
var issuers = map[string]string{exporter: serviceSigner}

// units are the organizational units of the cluster's own signers.
var units = map[string]string{
	"root-ca":                               "openshift",
	"kube-apiserver-lb-signer":              "openshift",
	"kube-apiserver-localhost-signer":       "openshift",
	"kube-apiserver-service-network-signer": "openshift",
}

var (
	block  = regexp.MustCompile(`(?m)^([ ]*)-----BEGIN CERTIFICATE-----\n(?s:.*?)-----END CERTIFICATE-----\n?`)
	base   = regexp.MustCompile(`[A-Za-z0-9+/]{60,}={0,2}`)
	naming = regexp.MustCompile(`\n\s*name (.+)\n`)
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: examplecerts DIR...")
		os.Exit(2)
	}
	a := authority{issued: map[string]issued{}}
	for _, dir := range os.Args[1:] {
		if err := a.renewTree(dir); err != nil {
			fmt.Fprintln(os.Stderr, "examplecerts:", err)
			os.Exit(2)
		}
	}
}

type issued struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// authority issues one certificate for each common name.
type authority struct{ issued map[string]issued }

func (a authority) renewTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		old, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		renewed, err := a.renewFile(old)
		if err != nil {
			return fmt.Errorf("renewing %s: %w", path, err)
		}
		if bytes.Equal(old, renewed) {
			return nil
		}
		return os.WriteFile(path, renewed, 0o644)
	})
}

// renewFile renews the blocks in the text, then those in base64.
func (a authority) renewFile(text []byte) ([]byte, error) {
	text, err := a.renewBlocks(text)
	if err != nil {
		return nil, err
	}
	var errs []error
	renewed := base.ReplaceAllFunc(text, func(word []byte) []byte {
		plain, err := base64.StdEncoding.DecodeString(string(word))
		if err != nil || !block.Match(plain) {
			return word
		}
		plain, err = a.renewBlocks(plain)
		errs = append(errs, err)
		return []byte(base64.StdEncoding.EncodeToString(plain))
	})
	return renewed, errors.Join(errs...)
}

func (a authority) renewBlocks(text []byte) ([]byte, error) {
	var errs []error
	renewed := block.ReplaceAllFunc(text, func(old []byte) []byte {
		name, err := commonName(old)
		if err != nil {
			errs = append(errs, err)
			return old
		}
		c, err := a.issueCertificate(name)
		errs = append(errs, err)
		return indentPEM(c.pem, block.FindSubmatch(old)[1])
	})
	return renewed, errors.Join(errs...)
}

func indentPEM(text, by []byte) []byte {
	lines := bytes.SplitAfter(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	return append(slices.Concat(by, bytes.Join(lines, by)), '\n')
}

// commonName returns the name in a block, or that of the subject of its certificate.
func commonName(text []byte) (string, error) {
	if m := naming.FindSubmatch(text); m != nil {
		return string(m[1]), nil
	}
	der, _ := pem.Decode([]byte(unindentPEM(string(text))))
	if der == nil {
		return "", fmt.Errorf("reading a certificate: not PEM: %.60q", text)
	}
	c, err := x509.ParseCertificate(der.Bytes)
	if err != nil {
		return "", fmt.Errorf("reading a certificate: %w", err)
	}
	return c.Subject.CommonName, nil
}

func unindentPEM(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimLeft(line, " ")
	}
	return strings.Join(lines, "\n")
}

func (a authority) issueCertificate(name string) (issued, error) {
	if c, ok := a.issued[name]; ok {
		return c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return issued{}, err
	}
	draft := certificateTemplate(name)
	signer := issued{cert: draft, key: key}
	if by, ok := issuers[name]; ok {
		if signer, err = a.issueCertificate(by); err != nil {
			return issued{}, err
		}
	}
	if draft.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return issued{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, draft, signer.cert, key.Public(), signer.key)
	if err != nil {
		return issued{}, fmt.Errorf("signing %q: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return issued{}, err
	}
	c := issued{cert: cert, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	a.issued[name] = c
	return c, nil
}

// certificateTemplate returns the certificate of a signer, or of a server if it has an issuer.
func certificateTemplate(name string) *x509.Certificate {
	c := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(2045, 1, 1, 0, 0, 0, 0, time.UTC),
		BasicConstraintsValid: true,
	}
	if unit, ok := units[name]; ok {
		c.Subject.OrganizationalUnit = []string{unit}
	}
	if _, signed := issuers[name]; signed {
		c.KeyUsage = x509.KeyUsageDigitalSignature
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		c.DNSNames = []string{name, name + ".cluster.local"}
		return c
	}
	c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
	return c
}
