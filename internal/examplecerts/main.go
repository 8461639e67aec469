// Command examplecerts renews every certificate in the example clusters of golden/clusters, in place.
//
//	go run ./internal/examplecerts golden/clusters
//
// It walks the folders it is given and looks for PEM certificates, as text or as the base64 of a Secret. Each is replaced
// by a new certificate of the same common name; in a file that is being written a block may hold `name <common name>`
// instead. One name is one certificate in all files of a run. Private keys never leave memory. Goldens that show
// certificates or their fingerprints change with every run.
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

// issuers names the signer of every certificate that does not sign itself.
var issuers = map[string]string{exporter: serviceSigner}

// units are the organizational units that the cluster's own signers carry.
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

// authority issues certificates by common name, each once.
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

// renewFile renews the blocks in the text, then those in its base64 words.
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
		c, err := a.issue(name)
		errs = append(errs, err)
		return indent(c.pem, block.FindSubmatch(old)[1])
	})
	return renewed, errors.Join(errs...)
}

func indent(text, by []byte) []byte {
	lines := bytes.SplitAfter(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	return append(slices.Concat(by, bytes.Join(lines, by)), '\n')
}

// commonName is the name of a block: what it says in words, or its certificate's subject.
func commonName(text []byte) (string, error) {
	if m := naming.FindSubmatch(text); m != nil {
		return string(m[1]), nil
	}
	der, _ := pem.Decode([]byte(unindent(string(text))))
	if der == nil {
		return "", fmt.Errorf("reading a certificate: not PEM: %.60q", text)
	}
	c, err := x509.ParseCertificate(der.Bytes)
	if err != nil {
		return "", fmt.Errorf("reading a certificate: %w", err)
	}
	return c.Subject.CommonName, nil
}

func unindent(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimLeft(line, " ")
	}
	return strings.Join(lines, "\n")
}

func (a authority) issue(name string) (issued, error) {
	if c, ok := a.issued[name]; ok {
		return c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return issued{}, err
	}
	draft := template(name)
	signer := issued{cert: draft, key: key}
	if by, ok := issuers[name]; ok {
		if signer, err = a.issue(by); err != nil {
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

// template is a signer, or a server's certificate when somebody else signs it.
func template(name string) *x509.Certificate {
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
