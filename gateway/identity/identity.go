package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Names of the files of a folder. containerd reads CA and Client with each pull (containerd docs/hosts.md, ca and client): Client has certificate and
// key, in one file.
const (
	CA     = "ca.crt"
	Client = "client.pem"
	Server = "server.pem"
)

const (
	// life is how long the certificates last, renewal how long before the end new ones are made.
	life    = 365 * 24 * time.Hour
	renewal = life / 3
	// past is taken off the beginning: the clock of a computer that has just started may be behind that of yesterday.
	past = 24 * time.Hour
)

// Folder keeps files. A file is replaced as a whole, with the access of its folder: on Windows its access list is inherited.
type Folder interface {
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, data []byte) error
}

// EnsureCertificates returns the configuration of a server that only holders of the client certificate reach. It makes certificates where there are none that last,
// and reports whether it did. After a renewal, the certificates before it are used and accepted until the next call: containerd reads its files with
// each pull, and keeps them for the length of the pull.
func EnsureCertificates(f Folder, address net.IP, now time.Time) (config *tls.Config, made bool, err error) {
	if config, err = loadConfig(f, now.Add(renewal)); err == nil {
		return config, false, nil
	}
	last, ended := loadConfig(f, now)
	before, _ := f.ReadFile(CA) // a damaged one is left out
	ca, client, server, err := makeAll(address, now)
	if err != nil {
		return nil, false, err
	}
	for _, file := range []struct {
		name string
		data []byte
	}{{CA, append(ca, lastingCA(before, now)...)}, {Client, client}, {Server, server}} {
		if err := f.WriteFile(file.name, file.data); err != nil {
			return nil, false, fmt.Errorf("writing %s: %w", file.name, err)
		}
	}
	if config, err = loadConfig(f, now); err == nil && ended == nil {
		config.Certificates = last.Certificates
	}
	return config, true, err
}

var errEnding = errors.New("a certificate ends")

// loadConfig reads the files, and returns an error unless all are of each other and last until a time.
func loadConfig(f Folder, until time.Time) (*tls.Config, error) {
	ca, err := f.ReadFile(CA)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", CA, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("reading %s: it has no certificate", CA)
	}
	var own tls.Certificate
	for name, use := range map[string]x509.ExtKeyUsage{Client: x509.ExtKeyUsageClientAuth, Server: x509.ExtKeyUsageServerAuth} {
		data, err := f.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		pair, err := tls.X509KeyPair(data, data)
		if err != nil {
			return nil, fmt.Errorf("reading %s: it is not a certificate with its key", name)
		}
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: until, KeyUsages: []x509.ExtKeyUsage{use}}); err != nil {
			return nil, fmt.Errorf("%w: %s", errEnding, name)
		}
		if name == Server {
			own = pair
		}
	}
	return &tls.Config{
		Certificates: []tls.Certificate{own}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
		NextProtos: []string{"http/1.1"}, // reason phrases, which HTTP/2 does not have
	}, nil
}

// lastingCA returns the newest certificate of a file of CAs that has not ended, as PEM; nil for none.
func lastingCA(data []byte, now time.Time) []byte {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil || !now.Before(c.NotAfter) {
		return nil
	}
	return pem.EncodeToMemory(block)
}

// makeAll makes a CA, and a certificate with its key for each side.
func makeAll(address net.IP, now time.Time) (ca, client, server []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("making a key: %w", err)
	}
	root := template("wmco image gateway of this node", now)
	root.IsCA, root.BasicConstraintsValid, root.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("making a CA: %w", err)
	}
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	sign := func(name string, use x509.ExtKeyUsage, addresses ...net.IP) []byte {
		own, failed := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if failed != nil {
			err = failed
			return nil
		}
		leaf := template(name, now)
		leaf.KeyUsage, leaf.ExtKeyUsage, leaf.IPAddresses = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{use}, addresses
		der, failed := x509.CreateCertificate(rand.Reader, leaf, root, own.Public(), key)
		if failed != nil {
			err = failed
			return nil
		}
		private, failed := x509.MarshalPKCS8PrivateKey(own)
		if failed != nil {
			err = failed
			return nil
		}
		return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	}
	client = sign("containerd", x509.ExtKeyUsageClientAuth)
	server = sign("wmco image gateway", x509.ExtKeyUsageServerAuth, address)
	return ca, client, server, err
}

func template(name string, now time.Time) *x509.Certificate {
	serial := make([]byte, 16)
	_, _ = rand.Read(serial) // it does not fail (crypto/rand)
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-past), NotAfter: now.Add(life),
	}
}
