package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// clientCA makes users. Its key is kept in a file too, so that the controller manager signs with it what the API server
// trusts.
type clientCA struct {
	parsed           *x509.Certificate
	signer           *ecdsa.PrivateKey
	certificate, key []byte
	// files are the certificate and the key; kubelets are those of the client that the API server is for kubelets.
	files, kubelets [2]string
}

const validity = 365 * 24 * time.Hour

func newClientCA() (*clientCA, error) {
	c := &clientCA{}
	var err error
	if c.signer, c.key, err = newKey(); err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "wmco-testenv-clients"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if c.certificate, err = c.signCertificate(template, template, c.signer.Public()); err != nil {
		return nil, err
	}
	block, _ := pem.Decode(c.certificate)
	c.parsed, err = x509.ParseCertificate(block.Bytes)
	return c, err
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	return key, text, err
}

func (c *clientCA) signCertificate(template, parent *x509.Certificate, public any) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(validity)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, c.signer)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}

// Configure implements envtest.Authn.
func (c *clientCA) Configure(folder string, args *envtest.Arguments) error {
	c.files = [2]string{filepath.Join(folder, "clients.crt"), filepath.Join(folder, "clients.key")}
	c.kubelets = [2]string{filepath.Join(folder, "kubelet-client.crt"), filepath.Join(folder, "kubelet-client.key")}
	args.Set("client-ca-file", c.files[0])
	// One CA signs the certificates of clients and of kubelets. The names of nodes are not in the DNS here.
	args.Set("kubelet-client-certificate", c.kubelets[0]).Set("kubelet-client-key", c.kubelets[1]).Set("kubelet-certificate-authority", c.files[0])
	args.Set("kubelet-preferred-address-types", "InternalIP")
	return nil
}

// Start implements envtest.Authn.
func (c *clientCA) Start() error {
	certificate, key, err := c.user("kube-apiserver")
	return errors.Join(err,
		os.WriteFile(c.files[0], c.certificate, 0o600), os.WriteFile(c.files[1], c.key, 0o600),
		os.WriteFile(c.kubelets[0], certificate, 0o600), os.WriteFile(c.kubelets[1], key, 0o600))
}

// user returns a certificate of a user and its key.
func (c *clientCA) user(name string, groups ...string) (certificate, key []byte, err error) {
	private, key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	certificate, err = c.signCertificate(&x509.Certificate{
		Subject:  pkix.Name{CommonName: name, Organization: groups},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, c.parsed, private.Public())
	return certificate, key, err
}

// AddUser implements envtest.Authn.
func (c *clientCA) AddUser(user envtest.User, base *rest.Config) (*rest.Config, error) {
	certificate, key, err := c.user(user.Name, user.Groups...)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(base)
	config.CertData, config.KeyData = certificate, key
	return config, nil
}

// Stop implements envtest.Authn.
func (c *clientCA) Stop() error { return nil }
