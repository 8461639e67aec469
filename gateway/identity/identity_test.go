package identity_test

import (
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"net"
	"testing"
	"time"

	"wmco/gateway/identity"
)

// folder is files in memory.
type folder map[string][]byte

func (f folder) ReadFile(name string) ([]byte, error) {
	if data, ok := f[name]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

func (f folder) WriteFile(name string, data []byte) error { f[name] = data; return nil }

func (f folder) clone() folder {
	c := folder{}
	for name, data := range f {
		c[name] = data
	}
	return c
}

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func ensure(t *testing.T, f folder, now time.Time) (config *tls.Config, made bool) {
	t.Helper()
	config, made, err := identity.EnsureCertificates(f, net.IPv4(127, 0, 0, 1), now)
	if err != nil {
		t.Fatal(err)
	}
	return config, made
}

// connects reports whether a client with the files of a folder reaches a server.
func connects(t *testing.T, server *tls.Config, client folder, now time.Time) bool {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(client[identity.CA])
	own := &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13, Time: func() time.Time { return now }}
	if pair, err := tls.X509KeyPair(client[identity.Client], client[identity.Client]); err == nil {
		own.Certificates = []tls.Certificate{pair}
	}
	server = server.Clone()
	server.Time = own.Time
	near, far := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- tls.Server(far, server).Handshake(); _ = far.Close() }()
	c := tls.Client(near, own)
	err := c.Handshake()
	if err == nil {
		_, _ = c.Read(make([]byte, 1)) // in TLS 1.3 a server refuses a client certificate after the handshake of the client
	}
	_ = near.Close()
	return <-done == nil && err == nil
}

func TestOnlyTheClientOfTheFolderConnects(t *testing.T) {
	t.Parallel()
	f, other := folder{}, folder{}
	config, made := ensure(t, f, begin)
	if !made || !connects(t, config, f, begin) {
		t.Error("containerd does not connect")
	}
	ensure(t, other, begin)
	for name, client := range map[string]folder{
		"no certificate":                {identity.CA: f[identity.CA]},
		"that of another node":          {identity.CA: f[identity.CA], identity.Client: other[identity.Client]},
		"the certificate of the server": {identity.CA: f[identity.CA], identity.Client: f[identity.Server]},
		"another CA":                    {identity.CA: other[identity.CA], identity.Client: f[identity.Client]},
	} {
		if connects(t, config, client, begin) {
			t.Errorf("%s connects", name)
		}
	}
}

func TestCertificatesAreRenewedBeforeTheyEnd(t *testing.T) {
	t.Parallel()
	f := folder{}
	first, _ := ensure(t, f, begin)
	old := f.clone()
	if _, made := ensure(t, f, begin.Add(200*24*time.Hour)); made {
		t.Error("new ones in the first half year")
	}
	late := begin.Add(250 * 24 * time.Hour)
	second, made := ensure(t, f, late)
	if !made {
		t.Fatal("no new ones")
	}
	for name, client := range map[string]folder{
		"the new files": f, "the old files": old,
		"a new CA and an old certificate": {identity.CA: f[identity.CA], identity.Client: old[identity.Client]},
		"an old CA and a new certificate": {identity.CA: old[identity.CA], identity.Client: f[identity.Client]},
	} {
		if !connects(t, second, client, late) {
			t.Errorf("%s do not connect", name)
		}
	}
	if third, made := ensure(t, f, late.Add(12*time.Hour)); made || !connects(t, third, f, late.AddDate(0, 11, 0)) {
		t.Errorf("the new ones are not used: made %t", made)
	}
	if !connects(t, first, old, late) {
		t.Error("the old ones end too early")
	}
	if connects(t, second, old, begin.Add(366*24*time.Hour)) {
		t.Error("the old client certificate is accepted after its end")
	}
}

func TestDamagedFilesAreMadeAnew(t *testing.T) {
	t.Parallel()
	for _, name := range []string{identity.CA, identity.Client, identity.Server} {
		for _, data := range [][]byte{nil, []byte("x"), []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")} {
			f := folder{}
			ensure(t, f, begin)
			f[name] = data
			config, made := ensure(t, f, begin)
			if !made || !connects(t, config, f, begin) {
				t.Errorf("%s of %q: made %t", name, data, made)
			}
		}
	}
	f, other := folder{}, folder{}
	ensure(t, f, begin)
	ensure(t, other, begin)
	f[identity.Server] = other[identity.Server]
	if config, made := ensure(t, f, begin); !made || !connects(t, config, f, begin) {
		t.Errorf("files of two CAs: made %t", made)
	}
}
