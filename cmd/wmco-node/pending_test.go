//go:build !windows

package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/keyutil"

	"wmco/internal/cli"
	"wmco/internal/nodecli"
)

// put writes a file of a simulated host.
func put(t *testing.T, root, path, text string) {
	t.Helper()
	at := filepath.Join(root, "C", filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// certified returns a key and its certificate in one text, as kubelets keep them, and the public half.
func certified(t *testing.T, notAfter time.Time) (text string, public []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "system:node:a"}, NotAfter: notAfter}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err = x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) + string(private), public
}

// TestTheKeyOfAnEarlierCertificateIsTheNextOne: a kubelet that has a certificate, expired or not, asks with its key, and with the key in
// the temporary file only where it cannot read that certificate.
func TestTheKeyOfAnEarlierCertificateIsTheNextOne(t *testing.T) {
	expired := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	current, currentKey := certified(t, expired)
	other, otherKey := certified(t, expired)
	private := other[strings.Index(other, "-----BEGIN EC"):]
	for name, tt := range map[string]struct {
		current, temporary string
		want               []byte
		notAfter           time.Time
	}{
		"an earlier certificate":                 {current, "", currentKey, expired},
		"an earlier certificate and another key": {current, private, currentKey, expired},
		"a damaged certificate and another key":  {current[:200], private, otherKey, time.Time{}},
		"a damaged certificate and no other key": {current[:200], "", nil, time.Time{}},
		"a certificate of another key":           {other[:strings.Index(other, "-----BEGIN EC")] + current[strings.Index(current, "-----BEGIN EC"):], private, otherKey, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if out, err := execute(t, "--root", root, "machine", "create"); err != cli.ExitDone {
				t.Fatal(out)
			}
			put(t, root, "var/lib/kubelet/pki/kubelet-client-current.pem", tt.current)
			if tt.temporary != "" {
				put(t, root, "var/lib/kubelet/pki/kubelet-client.key.tmp", tt.temporary)
			}
			out, status := execute(t, "--root", root, "pending-key")
			var answer struct {
				PublicKey []byte
				NotAfter  time.Time
			}
			if err := json.Unmarshal([]byte(out), &answer); err != nil || status != cli.ExitDone {
				t.Fatalf("status %d, %s: %v", status, out, err)
			}
			if !bytes.Equal(answer.PublicKey, tt.want) || !answer.NotAfter.Equal(tt.notAfter) {
				t.Errorf("%s, want notAfter %s", out, tt.notAfter)
			}
		})
	}
}

func TestThePendingKeyOfTheKubeletIsPrintedWithoutItsPrivateHalf(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Split(string(private), "\n")[1]
	for name, tt := range map[string]struct {
		file   string
		status int
		want   []byte
	}{
		"a key":          {string(private), cli.ExitDone, public},
		"none":           {"", cli.ExitDone, nil},
		"a damaged key":  {strings.Replace(string(private), body, body[1:], 1), cli.ExitPartial, nil},
		"something else": {"secret " + body, cli.ExitPartial, nil},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if out, err := execute(t, "--root", root, "machine", "create"); err != cli.ExitDone {
				t.Fatal(out)
			}
			if tt.file != "" {
				put(t, root, "var/lib/kubelet/pki/kubelet-client.key.tmp", tt.file)
			}
			out, status := execute(t, "--root", root, "pending-key")
			if status != tt.status || strings.Contains(out, body[:20]) {
				t.Fatalf("status %d, %s", status, out)
			}
			var answer struct{ PublicKey []byte }
			if err := json.Unmarshal([]byte(out), &answer); tt.status == cli.ExitDone && (err != nil || !bytes.Equal(answer.PublicKey, tt.want)) {
				t.Errorf("%s: %v", out, err)
			}
		})
	}
}

// execute runs a command line, and returns what it printed and its exit status.
func execute(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	p := nodecli.Program{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Clock: clock{}, Version: "test"}
	status := nodecli.Execute(t.Context(), newRoot(p), args)
	return out.String(), status
}
